"""Cases of two installations on one server, which differ in their prefix and in nothing else.

The other one is worked by a client of its own, has no worker, and is no part of the history: what
it holds and what it was told is read by the harness and recorded as inspections.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from dtq_conformance.bench import READY_LIMIT_S, Bench
from dtq_conformance.front import inspected, want
from dtq_conformance.keyspace import KeySpace
from dtq_conformance.target import ShowsReadiness, ShowsTasks, Submission, Target
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import wait_for

KEY = "order-7"
"""The same idempotency key for a task of each."""
SHORT_MS, LONG_MS = 200, 600
"""When delayed tasks of the two are due: the other's is, well before the run's own has ended."""


@contextlib.contextmanager
def _another(bench: Bench) -> Iterator[tuple[Target, KeySpace]]:
    """Another installation of the same target on the same server, and its keys, which are removed
    at the end."""
    broker = dataclasses.replace(bench.lab.broker, prefix=f"beside-{bench.keyspace.prefix}")
    with (contextlib.closing(bench.open_target(broker.url, prefix=broker.prefix)) as other,
          broker.connect() as client):
        try:
            yield other, KeySpace(client, broker.prefix)
        finally:
            broker.remove_keys()


class _Ear:
    """Listens on the channels of both."""

    def __init__(self, pubsub: Any, *prefixes: str) -> None:
        self._pubsub = pubsub
        for prefix in prefixes:
            pubsub.subscribe(f"{prefix}events")

    def heard(self, prefix: str) -> list[str]:
        """What was published on the channel of one of them, of all that was since the last time:
        the answer to a ping comes after it."""
        self._pubsub.ping()
        messages: list[dict[str, Any]] = []

        def is_over() -> bool:
            if (message := self._pubsub.get_message(timeout=0.1)) is not None:
                messages.append(message)
            return message is not None and message["type"] == "pong"

        wait_for(is_over, reason="the broker to answer a ping", limit_s=READY_LIMIT_S)
        channel = f"{prefix}events".encode()
        return [message["data"].decode(errors="replace")[:200] for message in messages
                if message["type"] == "message" and message["channel"] == channel]


def _neighbours_do_not_meet(bench: Bench) -> None:
    """What waits in the other one, in a pause and without a worker, is there after the work here as
    it was before, a delayed task that is due since then too."""
    own = bench.keyspace
    with (_another(bench) as (other, beside), bench.lab.broker.connect() as client,
          client.pubsub() as pubsub):
        ear = _Ear(pubsub, own.prefix, beside.prefix)
        theirs = [_submit(bench, other, **fields) for fields in (
            {"idempotency_key": KEY}, {"priority": 9}, {"delay_ms": SHORT_MS})]
        other.pause()  # type: ignore[attr-defined]
        _see(bench, "what the run's own installation has heard of another", {
            "events": ear.heard(own.prefix)}, events=[])
        before = beside.contents()
        worker = bench.start_worker()
        ours = [bench.submit({"sleep": 10}, idempotency_key=KEY), bench.submit(delay_ms=LONG_MS),
                bench.submit({"fail": "permanent"}),
                bench.submit({"fail": "retryable", "until_attempt": 1})]
        bench.cancel(bench.submit(delay_ms=600_000))
        bench.await_all_terminal()
        after = beside.contents()
        _see(bench, "what another installation holds", {
            "keys": len(before), "entries": beside.entries(), "members": len(beside.scheduled()),
            "changed": sorted(key for key in {**before, **after}
                              if before.get(key) != after.get(key))},
            entries=2, members=1, changed=[])
        _see(bench, "what another installation has heard", {
            "events": ear.heard(beside.prefix)}, events=[])
        _see(bench, "the work beside another installation, which is paused", {
            "executed": len({line.task_id for line in bench.witnessed("end")} & set(ours))},
            executed=len(ours))
        _see(bench, "what the two show of each other", {
            "tasks": _shown(other, ours) + _shown(bench.target, theirs),
            "workers": [worker.worker_id] * (isinstance(other, ShowsReadiness)
                                             and other.is_ready(worker.worker_id))},
            tasks=[], workers=[])


def _see(bench: Bench, about: str, seen: dict[str, Any], **holds: Any) -> None:
    inspected(bench, "the broker", [about], seen, want("KEY-09", about, holds=holds))


def _submit(bench: Bench, other: Target, **fields: Any) -> str:
    submission = Submission(task_id=bench.new_id(),
                            payload={"steps": [], "label": "another's"}, **fields)
    other.submit(submission)
    return submission.task_id


def _shown(target: Target, task_ids: list[str]) -> list[str]:
    """Those of the tasks that a target shows."""
    return [task_id for task_id in task_ids
            if isinstance(target, ShowsTasks) and target.look(task_id) is not None]


CASES = (
    Trial("conformance", "neighbours_do_not_meet",
          "Another installation's tasks wait on the same server, in a pause, while this one works.",
          ("KEY-09", "DLV-01"), _neighbours_do_not_meet,
          needs=("redis-schema", "idempotency", "retry", "schedule", "cancel", "pause")),
)
