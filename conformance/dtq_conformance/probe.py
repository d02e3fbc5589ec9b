"""The probe for a queue of one's own, if it is written in Python: what `probe_task` has to do.

A handler named `probe_task` calls `run_probe` with the payload that the harness submitted. It does
the payload's steps and writes, outside the queue, when it started and how it ended: one line, one
write, so that a process that is killed leaves either a whole line or none. Into DTQ_WITNESS; both
variables are set for every worker that the harness starts. It needs the standard library alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

Once = Callable[[str, Callable[[], Any]], Any]
"""A queue's own `idempotent_operation`, bound to its Redis and a time to live: key and function."""


class ProbeFailure(Exception):
    """The failure that a payload asked for. `retryable` says whether to try the task again."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"a failure of the kind {kind} was asked for")
        self.retryable = kind == "retryable"


def run_probe(payload: Mapping[str, Any], *, task_id: str, attempt: int = 1,
              worker_id: str | None = None, once: Once | None = None) -> Any:
    """Do the steps of a payload and return what the handler is to return.

    `attempt` counts the times that the task was handed to a handler; a queue that does not count
    them leaves it out, and one that has no operations done once leaves out `once`. Failures that
    the payload asks for are raised as `ProbeFailure`.
    """
    line = {"task_id": task_id, "attempt": attempt, "label": str(payload.get("label", "")),
            "worker_id": worker_id or os.environ.get("DTQ_WORKER_ID", "unnamed"),
            "pid": os.getpid()}
    _witness({**line, "event": "start"})
    outcome = "cancelled"
    try:
        result = _do_steps(payload, line, once)
        outcome = "ok"
        return result
    except Exception:
        outcome = "failed"
        raise
    finally:
        _witness({**line, "event": "end", "outcome": outcome})


def _do_steps(payload: Mapping[str, Any], line: Mapping[str, Any], once: Once | None) -> Any:
    result = {name: line[name] for name in ("attempt", "worker_id", "pid")}
    for step in payload.get("steps", []):
        if line["attempt"] > step.get("until_attempt", line["attempt"]):
            continue
        match step:
            case {"return": value}:
                return value
            case {"return_bytes": count}:
                return "x" * count
            case {"return_unserialisable": True}:
                return object()
            case {"once": key} if once is not None:
                result["once"] = once(key, lambda: {name: line[name]
                                                    for name in ("task_id", "attempt")})
            case _:
                _do(step)
    return result


def _do(step: Mapping[str, Any]) -> None:
    match step:
        case {"sleep": ms} | {"block": ms}:
            time.sleep(ms / 1000)
        case {"busy": ms}:
            ctypes.PyDLL(None).usleep(int(ms * 1000))
        case {"fail": "unknown"}:
            raise RuntimeError("an unknown failure was asked for")
        case {"fail": kind}:
            raise ProbeFailure(kind)
        case {"exit": code}:
            os._exit(code)
        case {"kill": True}:
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            raise ValueError(f"the probe has no step {sorted(step)}")


def _witness(line: Mapping[str, Any]) -> None:
    path = os.environ.get("DTQ_WITNESS")
    if not path:
        raise LookupError("DTQ_WITNESS is not set, so nobody would see that this ran. A worker "
                          "that the harness starts has it; hand it on to its children.")
    whole = json.dumps({"at_ns": time.monotonic_ns(), **line}).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, whole)
    finally:
        os.close(file)
