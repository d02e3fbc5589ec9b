"""Why a task was executed again: what befell the holder before, as data and as a sentence.

Comes in: a `History`. Goes out: one `Justification` for each execution after a task's first, which
checkers judge by and the report page shows. An expired lease is a consequence, never a cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from dtq_conformance import evidence, plan
from dtq_conformance.evidence import MS, at, holder, ms
from dtq_conformance.history import Execution, History, Life, Spell

Cause = Literal["failed", "died", "let_go", "stopped", "cut", "reply_lost", "broker_away",
                "past_its_limit", "stall", "nothing"]

Standing = Literal["justified", "unknown", "unjustified"]

_LASTING: dict[str, str] = {"stopped": "was stopped", "cut": "was cut off from the broker"}
"""Faults that justify an execution only when they outlast the lease."""


@dataclass(frozen=True)
class Befell:
    """What happened to a holder: the cause, when, and the words for it."""

    cause: Cause
    at_ns: int
    words: str


@dataclass(frozen=True)
class Justification:
    """One further execution, the one before it, and whether anything explains it."""

    task_id: str
    earlier: Execution
    later: Execution
    standing: Standing
    cause: Cause
    sentence: str

    def evidence(self) -> dict[str, Any]:
        """The two executions and the cause, as evidence of a finding."""
        return {"earlier": evidence.data(self.earlier), "later": evidence.data(self.later),
                "cause": self.cause}


def justifications(history: History) -> list[Justification]:
    """One justification for each execution after the first of its task, ordered by start."""
    found = [justify(history, earlier, later)
             for executions in history.executions.values()
             for earlier, later in _successions(executions)]
    return sorted(found, key=lambda j: (j.later.start_ns, j.task_id))


def _successions(executions: Sequence[Execution]) -> list[tuple[Execution, Execution]]:
    """Each further execution with the one before it, in the order of their starts."""
    ordered = sorted(executions, key=lambda e: e.start_ns)
    return list(pairwise(ordered))


def justify(history: History, earlier: Execution, later: Execution) -> Justification:
    """Say what explains that `later` started after `earlier` had started."""
    def said(standing: Standing, cause: Cause, words: str) -> Justification:
        return Justification(
            earlier.task_id, earlier, later, standing, cause,
            f"Task {earlier.task_id} was started again {at(history, later.start_ns)} "
            f"({holder(later)}): {words}.")

    if (earlier.outcome == "failed" and earlier.end_ns is not None
            and earlier.end_ns <= later.start_ns):
        return said("justified", "failed",
                    f"{holder(earlier)} failed {at(history, earlier.end_ns)}")
    befallen = what_befell(history, earlier, later)
    if befallen is not None:
        return said("justified", befallen.cause, befallen.words)
    what = f"{holder(earlier)} had started {at(history, earlier.start_ns)}"
    stall_ns = evidence.longest_stall_ns(history, earlier.start_ns, later.start_ns)
    if stall_ns > patience_ns(history):
        return said("unknown", "stall",
                    f"{what}, and only the machine's standing still for {ms(stall_ns)} could "
                    "explain that it lost its lease")
    ended = (f"ended {earlier.outcome} {at(history, earlier.end_ns)}"
             if earlier.end_ns is not None else "had not ended")
    return said("unjustified", "nothing",
                f"{what} and {ended}; nothing that befell it before then explains this, and a "
                "lease that ran out is not a cause")


def what_befell(history: History, earlier: Execution, later: Execution) -> Befell | None:
    """What befell the holder that lost its task by the time `later` started; None if nothing.

    As a rule that is the holder of `earlier`. A holder that was held up between its take and its
    start may start after its successor; its attempt number is then the lower one, and it is the
    one to which something must have happened.
    """
    if later.attempt < earlier.attempt:
        return befell(history, later, later.start_ns)
    return befell(history, earlier, later.start_ns)


def befell(history: History, execution: Execution, until_ns: int) -> Befell | None:
    """The first thing recorded that befell the holder of `execution` before `until_ns`."""
    candidates = [_death(history, execution, until_ns), _own_death(history, execution),
                  *(_spell(history, execution, spell, until_ns) for spell in history.spells),
                  _past_its_limit(history, execution, until_ns)]
    found = [candidate for candidate in candidates if candidate is not None]
    return min(found, key=lambda b: b.at_ns, default=None)


def patience_ns(history: History) -> int:
    """For how long a holder can be held up and surely keep its lease: a lease less one heartbeat,
    since its last renewal may be a heartbeat old."""
    timing = history.header.timing
    return (timing.lease_ms - timing.heartbeat_ms) * MS


def _death(history: History, execution: Execution, until_ns: int) -> Befell | None:
    gone_ns = evidence.death_ns(history, execution)
    if gone_ns is None or not execution.start_ns <= gone_ns <= until_ns:
        return None
    return Befell("died", gone_ns, f"the holder before, {holder(execution)}, "
                                   f"{evidence.death_in_words(history, execution)}")


def _own_death(history: History, execution: Execution) -> Befell | None:
    """A child of a worker whose payload bade it die: its worker lives on, and no exit of it is
    recorded."""
    if (execution.end_ns is not None
            or history.life_of(execution.pid, execution.start_ns) is not None
            or plan.ending(evidence.request_of(history, execution.task_id),
                           execution.attempt) != "dies"):
        return None
    return Befell("died", execution.start_ns,
                  f"the holder before, {holder(execution)}, ended itself as its payload bade it")


def _spell(history: History, execution: Execution, spell: Spell, until_ns: int) -> Befell | None:
    """What one fault did to the holder. It may have begun before the start, between the take and
    the start; then it lasted until at most a heartbeat before the start."""
    over_ns = until_ns if spell.to_ns is None else min(spell.to_ns, until_ns)
    earliest_ns = execution.start_ns - history.header.timing.heartbeat_ms * MS
    if spell.from_ns > until_ns or over_ns < earliest_ns:
        return None
    when = f"from {at(history, spell.from_ns)[3:]}"
    if spell.effect == "broker_away":
        return Befell("broker_away", spell.from_ns, f"the broker was away {when}")
    if execution.pid not in spell.pids:
        return None
    if spell.effect == "reply_lost":
        return Befell("reply_lost", spell.from_ns,
                      f"a reply to the holder before, {holder(execution)}, was lost {when}")
    if spell.effect in ("terminated", "replaced") and execution.outcome == "cancelled":
        return Befell("let_go", spell.from_ns,
                      f"the holder before, {holder(execution)}, was asked to stop "
                      f"{at(history, spell.from_ns)} and let its task go unfinished")
    stood_ns = spell.detail.get("stood_still_ms", 0) * MS
    if stood_ns > patience_ns(history):
        return Befell("stopped", spell.from_ns, f"the holder before, {holder(execution)}, stood "
                      f"still {when} for {ms(stood_ns)} while the harness looked at its hands")
    if spell.effect in _LASTING and over_ns - spell.from_ns > patience_ns(history):
        cause: Cause = "stopped" if spell.effect == "stopped" else "cut"
        return Befell(cause, spell.from_ns,
                      f"the holder before, {holder(execution)}, {_LASTING[spell.effect]} {when} "
                      f"for {ms(over_ns - spell.from_ns)}, longer than its lease less one "
                      "heartbeat")
    return None


def held_up_since_ns(history: History, execution: Execution) -> int:
    """Since when at most the start may have waited for handlers that let nothing else happen."""
    since_ns = execution.start_ns
    slack_ns = history.header.timing.heartbeat_ms * MS
    others = [other for each in history.executions.values() for other in each
              if other.pid == execution.pid and other.start_ns < execution.start_ns
              and plan.holds_up_its_worker(evidence.request_of(history, other.task_id),
                                           other.attempt)]
    for other in sorted(others, key=lambda e: -e.start_ns):
        if (other.end_ns or execution.start_ns) >= since_ns - slack_ns:
            since_ns = min(since_ns, other.start_ns)
    return since_ns


def _past_its_limit(history: History, execution: Execution, until_ns: int) -> Befell | None:
    """The time limit counts from just before the start line, for which a heartbeat is ample; or
    from before a handler of the same process that held up the start."""
    limit_ms = evidence.request_of(history, execution.task_id).get("timeout_ms")
    if not isinstance(limit_ms, int):
        return None
    began_ns = held_up_since_ns(history, execution) - history.header.timing.heartbeat_ms * MS
    limit_ns = max(execution.start_ns, began_ns + limit_ms * MS)
    if limit_ns > until_ns or (execution.end_ns is not None and execution.end_ns < limit_ns):
        return None
    return Befell("past_its_limit", limit_ns,
                  f"the handler before, {holder(execution)}, ran past its time limit of "
                  f"{ms(limit_ms * MS)}, having started {at(history, execution.start_ns)}")


def may_be_lost_unseen(history: History, from_ns: int, until_ns: int) -> bool:
    """Whether anything befell any worker in a span, or a little before, that may cost an attempt
    of which nobody saw who had it."""
    return any(_is_lost(history, life, from_ns, until_ns) for life in history.lives) or any(
        spell.from_ns < until_ns and (spell.to_ns or until_ns) > from_ns
        and _takes_leases(history, spell.effect,
                          min(spell.to_ns or until_ns, until_ns) - spell.from_ns)
        for spell in history.spells)


def _is_lost(history: History, life: Life, from_ns: int, until_ns: int) -> bool:
    """Whether a worker died in that time, or a little before. One that was asked to stop, and did
    so in good order, has given back what it had not started."""
    if life.role != "worker" or life.exit_ns is None:
        return False
    in_order = life.exit_code == 0 and not any(
        e.end_ns is None and evidence.life(history, e) == life
        for executions in history.executions.values() for e in executions)
    lease_ns = history.header.timing.lease_ms * MS
    return not in_order and from_ns - lease_ns <= life.exit_ns <= until_ns


def _takes_leases(history: History, effect: str, lasted_ns: int) -> bool:
    if effect == "broker_away":
        return True
    return effect in ("stopped", "cut") and lasted_ns > patience_ns(history)
