"""What was said to a target's fronts and what came back: its API, its command, its events, its log.

Lines of a history beside the operations. An `Exchange` carries what the contract makes of it: each
`Expected` names a clause and says what has to stand in the answer, and `lacks` compares the two.
Times are CLOCK_MONOTONIC nanoseconds.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

_ABSENT = object()


class Expected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
               forbid_unknown_fields=True):
    """What a clause asks of one answer. `told` says what was asked, as a sentence does: "a second
    cancel". What is empty is not asked for.

    `holds` and `has` name places in the body by a dotted path (`outcomes.0.status`); `says` and
    `hides` are texts that must, and must not, stand anywhere in the answer.
    """

    clause: str
    told: str
    status: list[int] = []
    code: str = ""
    holds: dict[str, Any] = {}
    has: list[str] = []
    says: list[str] = []
    hides: list[str] = []


class Exchange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
               forbid_unknown_fields=True, tag_field="kind", tag="exchange"):
    """One question to a process of the target, and its answer.

    `via` is `http` (`words` are the method and the path, `status` the answer's), `command` (`words`
    are the arguments, `status` the exit code, `messages` what stood on standard error), or
    `inspection`: the harness looked at something itself, which `words` name. `server` is the
    process that was asked. `status` is None if no answer came. `body` is decoded if it was JSON.
    """

    asked_ns: int
    answered_ns: int
    via: Literal["http", "command", "inspection"]
    server: str
    words: list[str]
    sent: dict[str, Any] = {}
    status: int | None = None
    headers: dict[str, str] = {}
    body: Any = None
    messages: str = ""
    expects: list[Expected] = []


class Heard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            tag_field="kind", tag="heard"):
    """A subscriber heard an event."""

    at_ns: int
    subscriber: str
    event: Any


class Subscription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
                   tag_field="kind", tag="subscription"):
    """From when to when a subscriber listened. `closed` is the code with which the server of a
    WebSocket ended it, if it did; `slow` one who did not read for a while."""

    from_ns: int
    to_ns: int
    subscriber: str
    via: Literal["channel", "websocket"]
    closed: int | None = None
    slow: bool = False


class LogSearch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
                tag_field="kind", tag="log"):
    """The log of one process was searched for a text. `found` are the lines that hold it, the
    first five; `what` is what the text is."""

    at_ns: int
    process: str
    lines: int
    what: Literal["payload", "secret", "forged line"]
    text: str
    found: list[str] = []


def place(body: Any, path: str) -> Any:
    """What stands at a dotted path; a value of its own, `ABSENT`, if nothing does."""
    for word in path.split("."):
        if isinstance(body, dict) and word in body:
            body = body[word]
        elif isinstance(body, list) and word.isdecimal() and int(word) < len(body):
            body = body[int(word)]
        else:
            return _ABSENT
    return body


def is_absent(body: Any, path: str) -> bool:
    """Whether nothing stands at a dotted path."""
    return place(body, path) is _ABSENT


def text_of(exchange: Exchange) -> str:
    """All that came back, as text."""
    body = exchange.body if isinstance(exchange.body, str) else json.dumps(exchange.body)
    return "\n".join([body, exchange.messages, *exchange.headers.values()])


def code_of(exchange: Exchange) -> str:
    """The code of a refusal: the field of an HTTP answer, the first word of a command's message."""
    if isinstance(exchange.body, dict):
        return str(exchange.body.get("code", ""))
    return ""


def lacks(exchange: Exchange, expected: Expected) -> list[str]:
    """What the answer lacks of what was expected, as half sentences; empty if nothing."""
    if exchange.status is None:
        return ["no answer came"]
    found = []
    if expected.status and exchange.status not in expected.status:
        wanted = " or ".join(map(str, expected.status))
        found.append(f"the status was {exchange.status}, not {wanted}")
    if expected.code:
        if exchange.via == "command":
            if expected.code not in exchange.messages:
                found.append(f"the message did not name {expected.code}")
        elif code_of(exchange) != expected.code:
            found.append(f"the code was {code_of(exchange) or 'missing'}, not {expected.code}")
    found += [f"{path} was missing" for path in expected.has if is_absent(exchange.body, path)]
    for path, value in expected.holds.items():
        there = place(exchange.body, path)
        if there is _ABSENT:
            found.append(f"{path} was missing")
        elif there != value:
            found.append(f"{path} was {there!r}, not {value!r}")
    text = text_of(exchange) if expected.says or expected.hides else ""
    found += [f"it did not say {each!r}" for each in expected.says if each not in text]
    found += [f"it showed {each!r}" for each in expected.hides if each in text]
    return found


def words_of(exchange: Exchange) -> str:
    """What was asked, as a command line or a request line shows it."""
    return " ".join(exchange.words)[:120]
