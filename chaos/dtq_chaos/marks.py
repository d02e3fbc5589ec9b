"""Marks: proof from outside the engine that a fault bit as the scenario meant it to.

Each is a function that makes a reader of histories. A mark that is not held makes the verdict
unknown: without its faults no scenario passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtq_conformance.history import Fault, History, Mark

ReadMark = Callable[[History], Mark]


def _bites(history: History, fault: str) -> list[Fault]:
    return [record for record in history.of(Fault)
            if record.fault == fault and record.phase == "bit"]


def _mark(name: str, held: bool, sentence: str, **evidence: Any) -> Mark:
    return Mark(name=name, held=held, sentence=sentence, evidence=evidence)


def killed_mid_handler(*, times: int = 1) -> ReadMark:
    """At each of `times` kills the victim had a start without an end."""

    def read(history: History) -> Mark:
        open_ = [bite.detail["open"] for bite in _bites(history, "kill_worker")]
        held = len(open_) == times and all(open_)
        return _mark("killed_mid_handler", held,
                     f"{sum(map(bool, open_))} of {times} kills struck a worker whose handler had "
                     "started and not ended.", open=open_)

    return read


def same_task(*, times: int) -> ReadMark:
    """All kills struck holders of one task."""

    def read(history: History) -> Mark:
        open_ = [set(bite.detail["open"]) for bite in _bites(history, "kill_worker")]
        common = set.intersection(*open_) if open_ else set()
        return _mark("same_task", len(open_) == times and bool(common),
                     f"{len(open_)} kills struck the holder of the same task.",
                     tasks=sorted(common))

    return read


def hands_full() -> ReadMark:
    """At the kill the broker showed as much pending for the victim as its concurrency."""

    def read(history: History) -> Mark:
        seen = [(len(bite.detail["in_hand"]), bite.detail["concurrency"])
                for bite in _bites(history, "kill_worker")]
        held = bool(seen) and all(count == concurrency for count, concurrency in seen)
        told = ", ".join(f"{count} of {concurrency}" for count, concurrency in seen) or "nothing"
        return _mark("hands_full", held, f"The broker showed {told} in the killed worker's hands.",
                     seen=seen)

    return read


def zombie() -> ReadMark:
    """The stopped holder wrote its end after the new holder had written its own."""

    def read(history: History) -> Mark:
        for bite in _bites(history, "stop_worker"):
            for task_id in bite.detail["open"]:
                executions = history.executions.get(task_id, [])
                old = [e.end_ns for e in executions if e.pid in bite.pids and e.end_ns]
                new = [e.end_ns for e in executions if e.pid not in bite.pids and e.end_ns]
                if old and new and max(old) > min(new):
                    return _mark("zombie", True, f"The stopped holder of task {task_id} ended its "
                                 f"handler {(max(old) - min(new)) / 1e6:.0f} ms after the new "
                                 "holder had.", task_id=task_id)
        return _mark("zombie", False, "No stopped holder ended its handler after a new holder.")

    return read


def terminated_mid_handler() -> ReadMark:
    """At the SIGTERM the victim had a start without an end."""

    def read(history: History) -> Mark:
        open_ = [bite.detail["open"] for bite in _bites(history, "terminate_worker")]
        return _mark("terminated_mid_handler", bool(open_) and all(open_),
                     f"{sum(map(len, open_))} handlers were running when the worker was asked to "
                     "stop.", open=open_)

    return read


def beyond_drain_limit() -> ReadMark:
    """The victim exited while a handler that was running at the SIGTERM had not ended."""

    def read(history: History) -> Mark:
        left = [task_id for bite in _bites(history, "terminate_worker")
                for task_id in bite.detail["open"]
                for execution in history.executions.get(task_id, [])
                if execution.pid in bite.pids and execution.outcome != "ok"]
        return _mark("beyond_drain_limit", bool(left),
                     f"{len(left)} handlers had not ended when the worker's drain limit was over.",
                     tasks=left)

    return read


def taken_and_not_started(*, count: int) -> ReadMark:
    """At the SIGTERM the broker showed `count` tasks in the victim's hands, none started."""

    def read(history: History) -> Mark:
        seen = [(len(bite.detail["in_hand"]), len(bite.detail["unstarted"]))
                for bite in _bites(history, "terminate_worker")]
        told = f"{seen[0][0]} in hand, {seen[0][1]} of them not started" if seen else "nothing"
        return _mark("taken_and_not_started", seen == [(count, count)],
                     f"When the worker was asked to stop, the broker showed {told}; "
                     f"{count} were meant.", seen=seen)

    return read


def worker_killed_itself(*, times: int) -> ReadMark:
    """Workers died of SIGKILL that nobody sent from outside, `times` times, mid-handler."""

    def read(history: History) -> Mark:
        deaths = [life.name for life in history.lives
                  if life.role == "worker" and life.signal == 9 and life.asked != "kill"]
        return _mark("worker_killed_itself", len(deaths) == times,
                     f"{len(deaths)} workers were killed by what they executed; {times} were "
                     "meant.", workers=deaths)

    return read


def sent_twice(*, of: str) -> ReadMark:
    """The broker saw the script twice for the task, and its key space shows it once."""

    def read(history: History) -> Mark:
        entries = 1 if of == "submission" else 0
        bites = [bite for record in ("lose_submission_reply", "lose_settlement_reply")
                 for bite in _bites(history, record) if bite.detail["of"] == of]
        held = bool(bites) and all(bite.detail["sent"] >= 2 and bite.detail["entries"] == entries
                                   for bite in bites)
        told = ", ".join(f"{bite.detail['sent']} times, with {bite.detail['entries']} entries "
                         "left" for bite in bites) or "not at all"
        return _mark("sent_twice", held, f"The broker was sent the {of} {told}.",
                     seen=[bite.detail for bite in bites])

    return read


def task_deleted() -> ReadMark:
    """The harness removed an accepted task from the server."""

    def read(history: History) -> Mark:
        deleted = [bite.detail["task_id"] for bite in _bites(history, "delete_task")]
        return _mark("task_deleted", bool(deleted) and all(deleted),
                     f"The harness removed {len([d for d in deleted if d])} accepted tasks.",
                     tasks=deleted)

    return read
