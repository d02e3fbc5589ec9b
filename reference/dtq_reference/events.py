"""Events: what the scripts publish on one channel, handed on to the API's WebSocket clients.

An API process subscribes once, while it has clients. Each has a mailbox of its own, so that a slow
one holds up neither the others nor the subscription: what does not fit is dropped, and the end of a
task, which nobody may miss, drives out what matters less. Where even that is too much the client is
let go.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

import msgspec
from redis.exceptions import RedisError
from starlette.websockets import WebSocket

from dtq_reference.states import TERMINAL

log = logging.getLogger("dtq.events")

EVENT_TYPES = (
    "TASK_QUEUED", "TASK_STARTED", "TASK_SUCCEEDED", "TASK_FAILED", "TASK_RETRY_SCHEDULED",
    "TASK_RETRIED", "TASK_DEAD_LETTERED", "TASK_CANCELLED", "TASK_EXPIRED",
    "TASK_DUPLICATE_ABSORBED", "TASK_SUPERSEDED", "WORKER_STARTED", "WORKER_STOPPED",
    "WORKER_STALE", "CONFIGURATION_CHANGED")
"""Every type of event; the contract's section 8 says when each is published."""

TERMINAL_TYPES = frozenset(f"TASK_{status.upper()}" for status in TERMINAL)

MAILBOX_SIZE = 1000
SILENCE_LIMIT_S = 2.0
"""The subscription is asked for a sign of life after so long, and made anew after twice that."""

TRY_AGAIN_LATER, SERVICE_RESTART = 1013, 1012
"""Codes that a WebSocket is closed with: for a client that is too slow, or while there is no
subscription; and when the subscription broke, so that events may have been missed."""


class _Type(msgspec.Struct):
    type: str


class Mailbox:
    """What waits to be sent to one client, at most `MAILBOX_SIZE` events. `dropped` counts what
    never will be; `close_code` is set when the client has to go; `opened` tells that it is known
    whether events come."""

    def __init__(self) -> None:
        self.dropped = 0
        self.close_code: int | None = None
        self.opened = asyncio.Event()
        self._changed = asyncio.Event()
        self._events: deque[tuple[str, bool]] = deque()

    def __len__(self) -> int:
        return len(self._events)

    def put(self, text: str, *, is_terminal: bool) -> None:
        """Add an event. In a full mailbox it is dropped; a terminal one drives out the oldest that
        is not, and where there is none the client has to go."""
        if len(self) >= MAILBOX_SIZE:
            self.dropped += 1
            if not is_terminal:
                return
            oldest = next((at for at, (_, ends) in enumerate(self._events) if not ends), None)
            if oldest is None:
                self.close(TRY_AGAIN_LATER)
                return
            del self._events[oldest]
        self._events.append((text, is_terminal))
        self._changed.set()

    def close(self, code: int) -> None:
        """Let the client go: nothing more is handed out."""
        self.close_code = self.close_code or code
        self.opened.set()
        self._changed.set()

    async def next(self) -> str | None:
        """The next event for the client, or None when it has to go."""
        while self.close_code is None and not self._events:
            self._changed.clear()
            await self._changed.wait()
        return self._events.popleft()[0] if self.close_code is None else None


class Fanout:
    """The one subscription of a process, and the mailboxes of its clients. `redis` is a client
    whose `pubsub()` is used, and nothing else."""

    def __init__(self, redis: Any, channel: str) -> None:
        self._redis = redis
        self._channel = channel
        self._mailboxes: set[Mailbox] = set()
        self._listening: asyncio.Task[None] | None = None
        self._subscribed = False

    def join(self) -> Mailbox:
        """A mailbox that gets every event from the moment on at which it is opened."""
        mailbox = Mailbox()
        self._mailboxes.add(mailbox)
        if self._subscribed:
            mailbox.opened.set()
        return mailbox

    def listen(self) -> None:
        """Begin to hand on events to those who have joined, unless that is under way."""
        self._listening = self._listening or asyncio.ensure_future(self._listen())

    def leave(self, mailbox: Mailbox) -> None:
        """Forget a client."""
        self._mailboxes.discard(mailbox)
        if mailbox.dropped:
            log.warning("a client was too slow; %d events were not sent to it", mailbox.dropped)

    async def serve(self, websocket: WebSocket) -> None:
        """Send a client every event until it leaves or has to go; what it says is ignored."""
        mailbox = self.join()
        self.listen()
        try:
            await mailbox.opened.wait()
            await websocket.accept()
            sending = asyncio.ensure_future(_send(websocket, mailbox))
            while (await websocket.receive())["type"] != "websocket.disconnect":
                pass
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        finally:
            self.leave(mailbox)

    async def _listen(self) -> None:
        """Hand on events as long as there are clients. Those of a subscription that breaks are let
        go, since they have to look for themselves at what they may have missed; the next one to
        come begins anew."""
        try:
            async with self._redis.pubsub() as pubsub:
                await self._hand_on(pubsub)
                self._listening, self._subscribed = None, False
        except Exception as error:  # whatever it was, events must come again
            if self._mailboxes:
                log.warning("the event stream broke: %s: %s", type(error).__name__, error)
            for mailbox in self._mailboxes:
                mailbox.close(SERVICE_RESTART if self._subscribed else TRY_AGAIN_LATER)
            self._listening, self._subscribed = None, False

    async def _hand_on(self, pubsub: Any) -> None:
        await pubsub.subscribe(self._channel)
        asked = False
        while self._mailboxes:
            message = await pubsub.get_message(timeout=SILENCE_LIMIT_S)
            if message is None and asked:
                raise RedisError(f"no sign of life for {2 * SILENCE_LIMIT_S:g} s")
            asked = message is None
            if message is None:
                await pubsub.ping()
            elif message["type"] == "subscribe":
                self._subscribed = True
                for mailbox in self._mailboxes:
                    mailbox.opened.set()
            elif message["type"] == "message":
                self.spread(message["data"])

    def spread(self, data: bytes) -> None:
        """Put an event into each mailbox."""
        try:
            is_terminal = msgspec.json.decode(data, type=_Type).type in TERMINAL_TYPES
            text = data.decode()
        except (msgspec.MsgspecError, UnicodeDecodeError):
            log.warning("what came on the event channel is not an event")
            return
        for mailbox in self._mailboxes:
            mailbox.put(text, is_terminal=is_terminal)


async def _send(websocket: WebSocket, mailbox: Mailbox) -> None:
    while (text := await mailbox.next()) is not None:
        await websocket.send_text(text)
    await websocket.close(mailbox.close_code or SERVICE_RESTART)
