"""Marks: proof from outside the engine that a fault bit as the scenario meant it to.

Each is a function that makes a reader of histories. A mark that is not held makes the verdict
unknown: without its faults no scenario passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtq_conformance.history import Fault, History, Mark

ReadMark = Callable[[History], Mark]


def bites_of(history: History, fault: str) -> list[Fault]:
    """The records that this kind of fault bit."""
    return [record for record in history.of(Fault)
            if record.fault == fault and record.phase == "bit"]


def _mark(name: str, held: bool, sentence: str, **evidence: Any) -> Mark:
    return Mark(name=name, held=held, sentence=sentence, evidence=evidence)


def killed_mid_handler(*, times: int = 1) -> ReadMark:
    """At each of `times` kills the victim had a start without an end."""

    def read(history: History) -> Mark:
        open_ = [bite.detail["open"] for bite in bites_of(history, "kill_worker")]
        held = len(open_) == times and all(open_)
        return _mark("killed_mid_handler", held,
                     f"{sum(map(bool, open_))} of {times} kills struck a worker whose handler had "
                     "started and not ended.", open=open_)

    return read


def same_task(*, times: int) -> ReadMark:
    """All kills struck holders of one task."""

    def read(history: History) -> Mark:
        open_ = [set(bite.detail["open"]) for bite in bites_of(history, "kill_worker")]
        common = set.intersection(*open_) if open_ else set()
        return _mark("same_task", len(open_) == times and bool(common),
                     f"{len(open_)} kills struck the holder of the same task.",
                     tasks=sorted(common))

    return read


def hands_full() -> ReadMark:
    """At the kill the broker showed as much pending for the victim as its concurrency."""

    def read(history: History) -> Mark:
        seen = [(len(bite.detail["in_hand"]), bite.detail["concurrency"])
                for bite in bites_of(history, "kill_worker")]
        held = bool(seen) and all(count == concurrency for count, concurrency in seen)
        told = ", ".join(f"{count} of {concurrency}" for count, concurrency in seen) or "nothing"
        return _mark("hands_full", held, f"The broker showed {told} in the killed worker's hands.",
                     seen=seen)

    return read


def zombie() -> ReadMark:
    """The stopped holder wrote its end after the new holder had written its own."""

    def read(history: History) -> Mark:
        for bite in bites_of(history, "stop_worker"):
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
        open_ = [bite.detail["open"] for bite in bites_of(history, "terminate_worker")]
        return _mark("terminated_mid_handler", bool(open_) and all(open_),
                     f"{sum(map(len, open_))} handlers were running when the worker was asked to "
                     "stop.", open=open_)

    return read


def beyond_drain_limit() -> ReadMark:
    """The victim exited while a handler that was running at the SIGTERM had not ended."""

    def read(history: History) -> Mark:
        left = [task_id for bite in bites_of(history, "terminate_worker")
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
                for bite in bites_of(history, "terminate_worker")]
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
                 for bite in bites_of(history, record) if bite.detail["of"] == of]
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
        deleted = [bite.detail["task_id"] for bite in bites_of(history, "delete_task")]
        return _mark("task_deleted", bool(deleted) and all(deleted),
                     f"The harness removed {len([d for d in deleted if d])} accepted tasks.",
                     tasks=deleted)

    return read


def all_killed(*, workers: int, unfinished: int) -> ReadMark:
    """`workers` died at one instant, each with work in hand, before `unfinished` tasks were."""

    def read(history: History) -> Mark:
        seen = [bite.detail for bite in bites_of(history, "kill_all_workers")]
        hands = [len(each["in_hand"]) for detail in seen for each in detail["hands"]]
        left = sum(detail["entries"] for detail in seen)
        return _mark("all_killed", len(hands) == workers and all(hands) and left >= unfinished,
                     f"{len(hands)} of {workers} workers were killed at once with {sum(hands)} "
                     f"tasks in hand, {left} being unfinished.", in_hand=hands, unfinished=left)

    return read


def others_went_on(*, during: str) -> ReadMark:
    """While the fault lay on its victim, others executed tasks to their end, and all those that
    the victim had had in hand."""

    def read(history: History) -> Mark:
        done, left = 0, 0
        for spell in history.spells:
            if spell.fault == during and spell.to_ns is not None:
                ended = {e.task_id for each in history.executions.values() for e in each
                         if e.pid not in spell.pids and e.outcome == "ok" and e.end_ns
                         and e.start_ns > spell.from_ns and e.end_ns < spell.to_ns}
                done += len(ended)
                left += len(set(spell.detail["in_hand"]) - ended)
        return _mark("others_went_on", done > 0 and not left,
                     f"While {during} lasted, other workers executed {done} tasks, and left {left} "
                     "of those that its victim had in hand.", done=done, left=left)

    return read


def took_new_work(*, after: str) -> ReadMark:
    """Once the fault was mended, its victim started tasks."""

    def read(history: History) -> Mark:
        began = [e.task_id for spell in history.spells if spell.fault == after and spell.to_ns
                 for each in history.executions.values() for e in each
                 if e.pid in spell.pids and e.start_ns > spell.to_ns]
        return _mark("took_new_work", bool(began),
                     f"After {after} the victim started {len(began)} tasks.", tasks=began)

    return read


def links_delayed(*, links: int) -> ReadMark:
    """A client of the harness's own waited on each link for as long as the delay, less jitter."""

    def read(history: History) -> Mark:
        seen = [bite.detail for bite in bites_of(history, "delay_link")]
        slow = [each for each in seen if each["seen_ms"] >= each["latency_ms"] - each["jitter_ms"]]
        told = ", ".join(f"{each['seen_ms']:.0f} ms" for each in seen) or "none"
        return _mark("links_delayed", len(slow) == links,
                     f"{len(slow)} of {links} links were seen to delay an answer: {told}.",
                     seen=seen)

    return read


def worked_under(fault: str, *, starts: int) -> ReadMark:
    """At least `starts` handlers started or ran on in the fault's victims while it lasted."""

    def read(history: History) -> Mark:
        spells = [spell for spell in history.spells if spell.fault == fault and spell.pids]
        ran = [e.task_id for spell in spells for each in history.executions.values()
               for e in each if e.pid in spell.pids and (e.end_ns or history.end_ns) > spell.from_ns
               and e.start_ns < (spell.to_ns or history.end_ns)]
        return _mark("worked_under", len(ran) >= starts,
                     f"{len(ran)} handlers ran in workers on which {fault} lay; at least {starts} "
                     "were meant.", count=len(ran))

    return read


def heartbeats_late() -> ReadMark:
    """The broker heard two heartbeats in a row of the starved worker late, and tasks in its
    hands."""

    def read(history: History) -> Mark:
        interval_ms = history.header.timing.heartbeat_ms
        seen = [bite.detail for bite in bites_of(history, "starve_link")]
        gaps = [gap for detail in seen for gap in detail["gaps_ms"][-2:]]
        held = (len(gaps) == 2 and min(gaps) > 1.5 * interval_ms
                and all(detail["in_hand"] for detail in seen))
        told = " and ".join(f"{gap} ms" for gap in gaps) or "no time that was seen"
        return _mark("heartbeats_late", held, f"The broker heard heartbeats after {told}; one "
                     f"each {interval_ms} ms was due.", gaps_ms=gaps)

    return read


def leader_killed() -> ReadMark:
    """The killed worker held the scheduler's lock, and tasks fell due while it still did."""

    def read(history: History) -> Mark:
        seen = [bite.detail for bite in bites_of(history, "kill_leader")]
        due = [task_id for detail in seen for task_id, due_in_ms in detail["due_in_ms"].items()
               if due_in_ms > 0 and not 0 <= detail["lock_left_ms"] <= due_in_ms]
        held = len(seen) == 1 and seen[0]["worker"] == seen[0]["lock_names"] and len(due) >= 2
        left = "for ever" if any(detail["lock_left_ms"] < 0 for detail in seen) else \
            f"for {sum(detail['lock_left_ms'] for detail in seen)} ms more"
        return _mark("leader_killed", held, f"{len(due)} scheduled tasks fell due while the "
                     f"scheduler's lock named the killed worker, {left}.", due=due)

    return read


def killed_mid_submission() -> ReadMark:
    """At its death the producer had been answered before, and waited for one answer."""

    def read(history: History) -> Mark:
        seen = [bite.detail for bite in bites_of(history, "kill_producer")]
        held = bool(seen) and all(each["answered"] and each["in_flight"] for each in seen)
        told = ", ".join(f"{each['answered']} answers, waiting for that about task "
                         f"{each['in_flight']}" for each in seen) or "none"
        return _mark("killed_mid_submission", held, f"The producer was killed after: {told}.",
                     seen=seen)

    return read
