"""What a worker took while something else waited, as far as that can be proven from outside.

Comes in: a `History`. Goes out: one `Choice` for each pair of tasks that both surely waited when a
worker took one of them, if it is known which had to come first: the two are of different levels, or
they are new tasks of one level, of which one was accepted before the other was asked for.
`strict_priority` judges them, `tamper` makes a bad one. A worker of concurrency 1 takes a task
between the end line of the one before it (its own start, for the first) and the task's start line;
only spans with no other worker count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dtq_conformance import evidence
from dtq_conformance.evidence import MS
from dtq_conformance.history import Execution, History, Life, Process


@dataclass(frozen=True)
class Waiting:
    """A task that waited to be started: since when at the latest, and how that is known.

    `again` tells work that had been in hand or in the schedule from new work.
    """

    execution: Execution
    level: int
    since_ns: int
    words: str
    again: bool


@dataclass(frozen=True)
class Choice:
    """`taken` was taken after `after_ns` and before its start; `left` waited all that time.

    `left_is_older` is told of two tasks of one level only.
    """

    taken: Execution
    taken_level: int
    after_ns: int
    left: Waiting
    again: bool
    left_is_older: bool = False

    @property
    def is_within_a_level(self) -> bool:
        return self.taken_level == self.left.level

    @property
    def is_strict(self) -> bool:
        """Whether the right one was taken: that of the higher level or, of one level, the older."""
        if self.is_within_a_level:
            return not self.left_is_older
        return self.taken_level > self.left.level


def choices(history: History) -> Iterator[Choice]:
    """Every provable choice between two tasks, in the order of the starts."""
    lives = [life for life in history.lives if life.role == "worker"]
    if all(life.concurrency != 1 for life in lives):
        return
    started = [execution for executions in history.executions.values() for execution in executions]
    waits = [wait for execution in started
             if (wait := _waiting(history, lives, execution)) is not None]
    for life in lives:
        if life.concurrency == 1:
            own = [execution for execution in started if evidence.life(history, execution) == life]
            yield from _of(history, life, own, waits, lives)


def _of(history: History, life: Life, own: list[Execution], waits: list[Waiting],
        lives: list[Life]) -> Iterator[Choice]:
    """The choices of one process. Executions that overlap, which a worker of concurrency 1 must
    not have, were all taken after the last end before the first of them."""
    after_ns = over_ns = life.start_ns
    for taken in sorted(own, key=lambda e: e.start_ns):
        if taken.start_ns >= over_ns:
            after_ns = over_ns
        over_ns = max(over_ns, evidence.over_ns(history, taken))
        level = _level(history, taken.task_id)
        if level is None or _has_company(lives, life, after_ns, taken.start_ns):
            continue
        again = _is_again(history, taken)
        for left in waits:
            if left.since_ns > after_ns or left.execution.start_ns <= taken.start_ns:
                continue
            if left.level != level:
                yield Choice(taken, level, after_ns, left, again or left.again)
            elif not (again or left.again) and (older := _older(history, taken, left)) is not None:
                yield Choice(taken, level, after_ns, left, False, older is left.execution)


def _older(history: History, taken: Execution, left: Waiting) -> Execution | None:
    """Of which of two new tasks the last success was answered before the other was asked for."""
    for older, younger in ((taken, left.execution), (left.execution, taken)):
        answered = [asked.answered_ns for asked in history.submissions.get(older.task_id, [])
                    if asked.outcome == "ok"]
        begun = history.submissions.get(younger.task_id, [])
        if answered and begun and max(answered) < begun[0].asked_ns:
            return older
    return None


def _has_company(lives: list[Life], own: Life, from_ns: int, to_ns: int) -> bool:
    return any(life is not own and life.start_ns < to_ns
               and (life.exit_ns is None or life.exit_ns > from_ns) for life in lives)


def _level(history: History, task_id: str) -> int | None:
    value = evidence.request_of(history, task_id).get("priority")
    return value if isinstance(value, int) else None


def _is_again(history: History, execution: Execution) -> bool:
    """Whether it had been in hand, or in the schedule, before it was taken for this execution."""
    first = history.executions[execution.task_id][0]
    return (execution is not first or execution.attempt > 1
            or evidence.request_of(history, execution.task_id).get("delay_ms", 0) > 0)


def _waiting(history: History, lives: list[Life], execution: Execution) -> Waiting | None:
    """From when on the task of this execution surely waited for it; None if nobody can tell."""
    level = _level(history, execution.task_id)
    accepted = [o for o in history.submissions.get(execution.task_id, []) if o.outcome == "ok"]
    if level is None or not accepted:
        return None
    executions = history.executions[execution.task_id]
    place = executions.index(execution)
    again = _is_again(history, execution)
    if not again:
        known_ns, words = accepted[0].answered_ns, "accepted"
    elif place > 0 and executions[place - 1].end_ns is None:
        return _redelivered(history, executions[place - 1], execution, level)
    else:
        since_ns = executions[place - 1].end_ns if place else accepted[0].answered_ns
        seen_ns = _seen_queued(history, execution, since_ns or 0)
        if seen_ns is None:
            return None
        known_ns, words = seen_ns, "seen queued"
    waited_ns = max([known_ns, *(_back_by(history, life, known_ns, execution) for life in lives)])
    if waited_ns > known_ns:
        words, again = "back from a worker that had ended", True
    return Waiting(execution, level, waited_ns, words, again)


def _seen_queued(history: History, execution: Execution, from_ns: int) -> int | None:
    """When the task was first seen to wait in its stream for this attempt, out of the schedule."""
    for look in history.looks.get(execution.task_id, []):
        if (look.asked_ns >= from_ns and look.answered_ns < execution.start_ns
                and look.answer.get("status") == "queued"
                and look.answer.get("attempt") == execution.attempt):
            return look.answered_ns
    return None


def _redelivered(history: History, lost: Execution, execution: Execution,
                 level: int) -> Waiting | None:
    """A task whose holder died waits at the latest when its lease has ended and a reap interval
    has passed: the last renewal came before the death."""
    holder = evidence.life(history, lost)
    if holder is None or holder.exit_ns is None:
        return None
    since_ns = _lease_counts_ns(history, holder.exit_ns, execution)
    return Waiting(execution, level, since_ns, "due for redelivery", True)


def _lease_counts_ns(history: History, exit_ns: int, execution: Execution) -> int:
    """From when on the lease of a holder that ended counts as ended: not while the server is
    younger than a lease (WORK-19), which it tells in whole seconds."""
    timing = history.header.timing
    begun_ns = [record.at_ns + 1_000 * MS for record in history.records
                if isinstance(record, Process) and record.role == "broker"
                and record.event == "start" and record.at_ns <= execution.start_ns]
    return max([exit_ns, *begun_ns]) + (timing.lease_ms + timing.reap_ms) * MS


def _back_by(history: History, life: Life, known_ns: int, execution: Execution) -> int:
    """When a worker that ended meanwhile, and may have had the task in hand unseen, had surely
    given it back or lost it. One of concurrency 1 that died in a handler held nothing else."""
    if (life.exit_ns is None or not known_ns <= life.exit_ns <= execution.start_ns):
        return 0
    own = [e for executions in history.executions.values() for e in executions
           if e.pid == life.pid and e.end_ns is None and evidence.life(history, e) == life]
    if life.concurrency == 1 and own:
        return 0
    if life.exit_code == 0:
        return life.exit_ns + history.header.timing.reap_ms * MS
    return _lease_counts_ns(history, life.exit_ns, execution)
