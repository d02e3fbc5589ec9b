"""Subscribers to a target's events: on the channel, or through the API's WebSocket.

Comes in: a bench. Goes out: what each subscriber heard, as lines of the history, and from when to
when it listened. A subscriber has heard all that was published before its end: the channel is asked
to bring an event of the harness's own, which is not recorded.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

from dtq_conformance.bench import Bench, TargetFault
from dtq_conformance.exchange import Heard, Subscription
from dtq_conformance.front import HOST, Api
from dtq_conformance.waiting import let_pass, wait_for
from dtq_conformance.websocket import WebSocket, WebSocketError

PATH = "/ws/events"
FLUSH_LIMIT_S = 15.0
QUIET_MS = 1_000
"""How long a WebSocket of a target without a channel may still bring what was published."""


class _Ear:
    """What one subscriber has heard so far. `flushed` are ids of the harness's own events."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[Heard] = []
        self.flushed: set[str] = set()
        self.is_over = threading.Event()

    def hear(self, text: str | bytes) -> None:
        try:
            event: Any = json.loads(text)
        except ValueError:
            event = text if isinstance(text, str) else text.decode(errors="replace")
        event_id = event.get("event_id", "") if isinstance(event, dict) else ""
        if str(event_id).startswith("judge-"):
            self.flushed.add(event_id)
            return
        self.heard.append(Heard(at_ns=time.monotonic_ns(), subscriber=self.name, event=event))


@contextlib.contextmanager
def on_the_channel(bench: Bench) -> Iterator[None]:
    """Listen on the channel `events` while the block runs."""
    ear = _Ear("channel")
    with bench.lab.broker.connect() as client, client.pubsub() as pubsub:
        pubsub.subscribe(f"{bench.keyspace.prefix}events")
        wait_for(lambda: pubsub.get_message(timeout=1.0), reason="the subscription",
                 limit_s=FLUSH_LIMIT_S)
        from_ns = time.monotonic_ns()

        def listen() -> None:
            while not ear.is_over.is_set():
                message = pubsub.get_message(timeout=0.1)
                if message is not None and message["type"] == "message":
                    ear.hear(message["data"])

        with _listening(bench, ear, listen):
            yield
        bench.records.append(Subscription(from_ns=from_ns, to_ns=time.monotonic_ns(),
                                          subscriber=ear.name, via="channel"))


@contextlib.contextmanager
def on_the_websocket(bench: Bench, api: Api, name: str) -> Iterator[None]:
    """Listen as a client of the API's WebSocket while the block runs."""
    ear = _Ear(name)
    websocket = websocket_of(api)
    from_ns = time.monotonic_ns()

    def listen() -> None:
        while not ear.is_over.is_set() and websocket.closed is None:
            text = websocket.text(limit_s=0.1)
            if text is not None:
                ear.hear(text)

    with contextlib.closing(websocket):
        with _listening(bench, ear, listen):
            yield
        bench.records.append(Subscription(
            from_ns=from_ns, to_ns=time.monotonic_ns(), subscriber=name, via="websocket",
            closed=websocket.closed))


def websocket_of(api: Api, *, buffer_bytes: int | None = None) -> WebSocket:
    """A client of the API's WebSocket. Raises `TargetFault` if the API has none."""
    try:
        return WebSocket(HOST, api.port, PATH, buffer_bytes=buffer_bytes)
    except (WebSocketError, OSError) as error:
        raise TargetFault(f"The API has no WebSocket at {PATH}: {error}.") from error


@contextlib.contextmanager
def _listening(bench: Bench, ear: _Ear, listen: Any) -> Iterator[None]:
    thread = threading.Thread(target=listen, name=f"listen-{ear.name}", daemon=True)
    thread.start()
    try:
        yield
        _flush(bench, ear, thread)
    finally:
        ear.is_over.set()
        thread.join(FLUSH_LIMIT_S)
        bench.records.extend(ear.heard)


def _flush(bench: Bench, ear: _Ear, thread: threading.Thread) -> None:
    """Return when all that was published has been heard, or nothing more can be."""
    if not bench.has_schema:
        let_pass(QUIET_MS)
        return
    event_id = f"judge-{bench.new_id()}"
    publish(bench, {"event_id": event_id, "ts": 0, "type": "CONFIGURATION_CHANGED"})
    wait_for(lambda: event_id in ear.flushed or not thread.is_alive(),
             reason=f"all events to reach {ear.name}", limit_s=FLUSH_LIMIT_S)


def publish(bench: Bench, *events: dict[str, Any]) -> None:
    """Publish events of the harness's own on the channel."""
    client = bench.keyspace.client
    pipeline = client.pipeline(transaction=False)
    for event in events:
        pipeline.publish(f"{bench.keyspace.prefix}events", json.dumps(event))
    pipeline.execute()
