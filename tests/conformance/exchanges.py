"""Exchanges, events and logs for small histories, built record by record, beside `histories`."""

from __future__ import annotations

from typing import Any

from dtq_conformance.exchange import Exchange, Expected, Heard, LogSearch, Subscription

from tests.conformance.histories import LATE, T, ns


def expects(clause: str, *status: int, **more: Any) -> Expected:
    return Expected(clause=clause, told="a request", status=list(status), **more)


def http(method: str, path: str, status: int | None, body: Any = None, *, at: int = 100,
         expects: list[Expected] | None = None, sent: dict[str, str] | None = None,
         server: str = "api-1", **headers: str) -> Exchange:
    """A request and its answer; `sent` are the headers that were sent."""
    answered = {"x-request-id": "r-1", **{
        name.replace("_", "-"): value for name, value in headers.items()}}
    return Exchange(asked_ns=ns(at), answered_ns=ns(at + 5), via="http", server=server,
                    words=[method, path], sent={"headers": sent or {}}, status=status,
                    headers=answered, body=body, expects=expects or [])


def refusal(code: str, **more: Any) -> dict[str, Any]:
    return {"code": code, "message": "No.", "request_id": "r-1", **more}


def command(*words: str, status: int = 0, body: Any = None, messages: str = "", at: int = 100,
            expects: list[Expected] | None = None, **settings: str) -> Exchange:
    """A command and what it printed."""
    return Exchange(asked_ns=ns(at), answered_ns=ns(at + 5), via="command", server="command",
                    words=list(words), sent={"settings": settings}, status=status, body=body,
                    messages=messages, expects=expects or [])


def inspected(server: str, words: list[str], body: Any, *, at: int = 100,
              expects: list[Expected] | None = None) -> Exchange:
    return Exchange(asked_ns=ns(at), answered_ns=ns(at), via="inspection", server=server,
                    words=words, status=0, body=body, expects=expects or [])


def heard(type_: str, at: int, task_id: str = T, *, attempt: int = 1, by: str = "channel",
          event_id: str = "", worker_id: str = "", **more: Any) -> Heard:
    """An event; its id is drawn from what it says, unless one is given."""
    event = {"event_id": event_id or f"{type_}-{at}-{task_id}", "ts": at, "type": type_,
             "task_id": task_id, "queue": "default", "task_type": "probe_task",
             "attempt": attempt, "worker_id": worker_id, **more}
    return Heard(at_ns=ns(at), subscriber=by, event=event)


def listened(by: str = "channel", from_ms: int = 0, to_ms: int = LATE, **more: Any) -> Subscription:
    via = "channel" if by == "channel" else "websocket"
    return Subscription(from_ns=ns(from_ms), to_ns=ns(to_ms), subscriber=by, via=via, **more)


def log(what: Any, *found: str, process: str = "worker-1") -> LogSearch:
    return LogSearch(at_ns=ns(LATE), process=process, lines=20, what=what, text="x",
                     found=list(found))
