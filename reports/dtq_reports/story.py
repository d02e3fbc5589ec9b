"""What happened to a task that a verdict accuses the target about, told in the order of time.

Comes in: a run. Goes out: for each accused task the finding's sentence, and everything recorded
about the task and the workers that held it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dtq_conformance import evidence
from dtq_conformance.history import Execution

from dtq_reports.read import Run

TASKS_AT_MOST = 5


@dataclass(frozen=True)
class Event:
    """One thing that happened, and when: `at` is the time since the run began, with its unit."""

    at: str
    text: str


@dataclass(frozen=True)
class Story:
    """A finding and the events that led to it; no events if it is not about one task."""

    sentence: str
    events: tuple[Event, ...]


def stories(run: Run) -> list[Story]:
    """The first violations of a run, one story for each task."""
    found: dict[str, Story] = {}
    for row in run.verdict.rows:
        for finding in row.findings:
            key = finding.task_id or finding.sentence
            if finding.status == "violated" and key not in found and len(found) < TASKS_AT_MOST:
                events = _events(run, finding.task_id) if finding.task_id else ()
                found[key] = Story(f"{row.clause}: {finding.sentence}", events)
    return list(found.values())


def _events(run: Run, task_id: str) -> tuple[Event, ...]:
    history = run.history
    told: list[tuple[int, str]] = []
    for asked in history.submissions.get(task_id, []):
        how = {"ok": "accepted", "refused": "refused"}.get(asked.outcome, "not answered")
        told.append((asked.answered_ns, f"submitted, and {how}"))
    for execution in history.executions.get(task_id, []):
        told += _execution(run, execution)
    for spell in history.spells:
        if spell.effect == "deleted" and spell.detail.get("task_id") == task_id:
            told.append((spell.from_ns, "deleted from the server by the harness itself"))
    last = evidence.last_look(history, task_id)
    if last is not None:
        shown = last.answer.get("status")
        told.append((last.answered_ns, f"looked at last: {shown}, attempt "
                     f"{last.answer.get('attempt')}" if shown else
                     "looked at last: the target does not know it"))
    told.sort()
    return tuple(Event(evidence.ms(at_ns - history.header.began_ns), text)
                 for at_ns, text in told)


def _execution(run: Run, execution: Execution) -> list[tuple[int, str]]:
    who = evidence.holder(execution)
    told = [(execution.start_ns, f"started: {who}")]
    gone_ns = evidence.lost_holder_ns(run.history, execution)
    if execution.end_ns is not None:
        told.append((execution.end_ns, f"ended {execution.outcome}: {who}"))
    elif gone_ns is not None:
        life = evidence.life(run.history, execution)
        how = "killed (SIGKILL)" if life is not None and life.signal == 9 else "gone"
        told.append((gone_ns, f"its worker was {how} in the middle of it: {who}"))
    return told
