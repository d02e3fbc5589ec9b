"""Retry delays lie in their envelope: never short, spread by the jitter, and late within bounds.

The lower edge is safety and has no tolerance but the clocks' granularity. The upper edge is
liveness: judged where the worker that started the task had room all the while and nothing lay on
the run. The jitter is judged by statistics, and the verdict tells how surely.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from dtq_conformance import evidence, plan
from dtq_conformance.evidence import MS, at, data, holder, ms
from dtq_conformance.history import Execution, History, Timing
from dtq_conformance.justification import befell
from dtq_conformance.verdict import Ledger, Verdict

SHORT_MS = 2
"""By how much a delay may be short: both ends are whole milliseconds of another clock."""

LATE_MS = 500
"""How late a due task may start beyond one interval of the scheduler."""

LEADER_MS = 10_000
"""What the death of the scheduler's leader may add to that."""

AT_ONCE = 100
"""How many tasks may be due at a time for the upper edge to be judged."""

DELAYS_NEEDED = 200
ERROR = 1e-9
"""How many delays the statistics need, and how often they may accuse a target that is right."""

PROMISES = {
    "RETRY-05": "All {n} retries waited for at least the delay of their attempt.",
    "RETRY-06": "",
    "RETRY-12": "All {n} retries for which a worker had room waited no longer than their delay.",
    "SCHED-01": "All {n} delayed tasks waited until their time.",
    "SCHED-02": "All {n} due tasks for which a worker had room were started in time.",
}


@dataclass(frozen=True)
class Appointment:
    """A start that had to wait: from `since_ns` on, for `shortest_ms` to `longest_ms`.

    `before` is the failed attempt; None for a delayed task. `heard_ns` is when the wait had
    surely begun.
    """

    before: Execution | None
    start: Execution
    since_ns: int
    heard_ns: int
    nominal_ms: float
    shortest_ms: float
    longest_ms: float

    @property
    def gap_ns(self) -> int:
        return self.start.start_ns - self.since_ns

    @cached_property
    def due_by_ns(self) -> int:
        """When it was due at the latest."""
        return self.heard_ns + round(self.longest_ms * MS)

    @cached_property
    def due_from_ns(self) -> int:
        """When it was due at the earliest."""
        return self.since_ns + round(self.shortest_ms * MS)


def check(history: History) -> list[Verdict]:
    """Judge every start that followed a failed attempt or a delayed submission."""
    retries, delayed = list(_retries(history)), list(_delayed(history))
    spread, sentence = _spread(history, retries)
    ledger = Ledger("retry_delays_in_envelope", {**PROMISES, "RETRY-06": sentence})
    for clause, appointments in (("RETRY-05", retries), ("SCHED-01", delayed)):
        for appointment in appointments:
            ledger.judged(clause)
            _is_not_short(history, ledger, clause, appointment)
    _are_in_time(history, ledger, [*retries, *delayed])
    ledger.judged("RETRY-06", len(spread))
    if spread:
        _is_spread(history, ledger, spread)
    return ledger.verdicts()


def nominal_ms(timing: Timing, attempt: int) -> float:
    """The delay after failed attempt n without jitter: section "Attempts and retries"."""
    return min(timing.max_delay_ms, timing.base_delay_ms * 2.0 ** (attempt - 1))


def _retries(history: History) -> Iterator[Appointment]:
    """Starts after a failure of the attempt before, unless something befell its holder: then it
    may be a redelivery."""
    timing = history.header.timing
    for executions in history.executions.values():
        for before, start in pairwise(executions):
            if (before.outcome == "failed" and before.end_ns is not None
                    and start.start_ns >= before.end_ns and start.attempt == before.attempt + 1
                    and befell(history, before, start.start_ns) is None):
                nominal = nominal_ms(timing, before.attempt)
                yield Appointment(before, start, before.end_ns, before.end_ns, nominal,
                                  nominal * (1 - timing.jitter), nominal * (1 + timing.jitter))


def _delayed(history: History) -> Iterator[Appointment]:
    """First starts of tasks that were submitted for later."""
    for task_id, executions in history.executions.items():
        asked = [o for o in history.submissions.get(task_id, []) if o.outcome != "refused"]
        accepted = [o for o in asked if o.outcome == "ok"]
        delay_ms = evidence.request_of(history, task_id).get("delay_ms", 0)
        if accepted and delay_ms > 0:
            yield Appointment(None, executions[0], asked[0].asked_ns, accepted[0].answered_ns,
                              delay_ms, delay_ms, delay_ms)


def _is_not_short(history: History, ledger: Ledger, clause: str, wait: Appointment) -> None:
    if wait.gap_ns >= (wait.shortest_ms - SHORT_MS) * MS:
        return
    task_id = wait.start.task_id
    told = _story(history, wait)
    allowed = (f"the delay is {wait.nominal_ms:g} ms, with its jitter at least "
               f"{wait.shortest_ms:g} ms" if wait.before else
               f"it was submitted for {wait.shortest_ms:g} ms later")
    ledger.violated(clause, task_id, f"{told}, {ms(wait.gap_ns)} later; {allowed}.",
                    gap_ns=wait.gap_ns, shortest_ms=wait.shortest_ms,
                    before=wait.before and data(wait.before), start=data(wait.start))


def _story(history: History, wait: Appointment) -> str:
    began = (f"{holder(wait.before)} of task {wait.start.task_id} failed" if wait.before else
             f"Task {wait.start.task_id} was submitted")
    return (f"{began} {at(history, wait.since_ns)} and {holder(wait.start)} started "
            f"{at(history, wait.start.start_ns)}")


# The upper edge ---------------------------------------------------------------------------------

def _are_in_time(history: History, ledger: Ledger, waits: list[Appointment]) -> None:
    for wait in waits:
        if not _could_start(history, wait) or _beside(waits, wait) > AT_ONCE:
            continue
        clauses = ("SCHED-02",) if wait.before is None else ("SCHED-02", "RETRY-12")
        for clause in clauses:
            ledger.judged(clause)
        allowed_ms = history.header.timing.schedule_ms + LATE_MS
        if _leader_may_have_died(history, wait):
            allowed_ms += LEADER_MS
        late_ns = wait.start.start_ns - wait.due_by_ns - allowed_ms * MS
        if late_ns <= 0:
            continue
        stalled_ns = evidence.stalled_ns(history.stalls, wait.heard_ns, wait.start.start_ns)
        told = (f"{_story(history, wait)}, although it was due by "
                f"{at(history, wait.due_by_ns)[3:]}, its worker had room, and it may be late by "
                f"{ms(allowed_ms * MS)}")
        for clause in clauses:
            if late_ns <= stalled_ns:
                ledger.unknown(clause, wait.start.task_id,
                               f"{told}; only the machine's standing still for {ms(stalled_ns)} "
                               "could explain that.", late_ns=late_ns, stalled_ns=stalled_ns)
            else:
                ledger.violated(clause, wait.start.task_id, f"{told}.", late_ns=late_ns,
                                due_by_ns=wait.due_by_ns, start=data(wait.start))


def _could_start(history: History, wait: Appointment) -> bool:
    """Whether its own worker ran and had room from when it was due, with nothing on the run."""
    if evidence.may_be_paused(history, wait.due_from_ns, wait.start.start_ns):
        return False
    if any(each.start_ns < wait.start.start_ns
           and evidence.over_ns(history, each) > wait.due_from_ns
           and plan.holds_up_its_worker(evidence.request_of(history, each.task_id), each.attempt)
           for executions in history.executions.values() for each in executions
           if each is not wait.start):
        return False  # who leads the scheduling may have been held up by it
    life = evidence.life(history, wait.start)
    recovery_ns = history.header.timing.recovery_ms * MS
    if life is None or life.concurrency is None or any(
            spell.effect not in ("killed", "terminated") and spell.from_ns <= wait.start.start_ns
            and (spell.to_ns is None or spell.to_ns + recovery_ns >= wait.heard_ns)
            for spell in history.spells):
        return False
    own = [e for executions in history.executions.values() for e in executions
           if e.pid == wait.start.pid and e is not wait.start]
    if not any(e.start_ns <= wait.heard_ns for e in own):
        return False  # nothing shows that it had started up by then
    return _busiest(history, own, wait.due_from_ns, wait.start.start_ns) < life.concurrency


def _busiest(history: History, own: list[Execution], from_ns: int, to_ns: int) -> int:
    """The most that a process had in hand at once in a span. After its end line an execution is
    still to be settled; a heartbeat is ample for that."""
    ample_ns = history.header.timing.heartbeat_ms * MS
    steps = sorted(step for e in own
                   if e.start_ns <= to_ns and evidence.over_ns(history, e) + ample_ns >= from_ns
                   for step in ((e.start_ns, 1), (evidence.over_ns(history, e) + ample_ns, -1)))
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def _beside(waits: list[Appointment], wait: Appointment) -> int:
    """How many may have been due at the same time, itself included."""
    return sum(other.due_from_ns <= wait.due_by_ns and wait.due_from_ns <= other.due_by_ns
               for other in waits)


def _leader_may_have_died(history: History, wait: Appointment) -> bool:
    """A worker that ended in good order has given the leader's lock back."""
    return any(life.role == "worker" and life.exit_ns is not None and life.exit_code != 0
               and life.exit_ns <= wait.start.start_ns for life in history.lives)


# The jitter -------------------------------------------------------------------------------------

def _spread(history: History, retries: list[Appointment]) -> tuple[list[Appointment], str]:
    """The retries whose jitter is wide enough to show through whatever a start may be late, and
    what to say when they are as they should be."""
    told = [wait for wait in retries if _chance_short(history, wait) > 0]
    shorter, longer, unclear = _sides(history, told)
    return told, (f"Of {len(told)} delays {shorter} were shorter and {longer} longer than they "
                  f"would be without jitter, and a stall of the machine lay on {unclear}. A target "
                  f"whose delays are spread as promised fails this test with a probability below "
                  f"{2 * ERROR:g}.")


def _chance_short(history: History, wait: Appointment) -> float:
    """How likely a delay with the promised jitter is seen to be shorter than without: it must
    be drawn shorter by more than a start may be late."""
    width_ms = wait.nominal_ms * history.header.timing.jitter
    late_ms = history.header.timing.schedule_ms + LATE_MS + SHORT_MS
    return (width_ms - late_ms) / (2 * width_ms) if width_ms > late_ms else 0.0


def _sides(history: History, waits: list[Appointment]) -> tuple[int, int, int]:
    """How many delays were surely shorter than without jitter, how many longer, and on how many
    lay a stall, which says nothing."""
    shorter = longer = unclear = 0
    for wait in waits:
        if evidence.stalled_ns(history.stalls, wait.since_ns, wait.start.start_ns):
            unclear += 1
        elif wait.gap_ns < (wait.nominal_ms - SHORT_MS) * MS:
            shorter += 1
        else:
            longer += 1
    return shorter, longer, unclear


def _is_spread(history: History, ledger: Ledger, waits: list[Appointment]) -> None:
    """Count the delays on either side. Were they drawn as promised, the shorter ones would be at
    least binomial with `chance`, the longer ones with one half, since being late only adds. What a
    stall lay on is counted in favour of the target."""
    count = len(waits)
    chance = min(_chance_short(history, wait) for wait in waits)
    if count < DELAYS_NEEDED or (1 - chance) ** count > ERROR:
        ledger.unknown("RETRY-06", None, f"Only {count} delays are wide enough to show their "
                       f"jitter; {DELAYS_NEEDED} are needed.", delays=count)
        return
    shorter, longer, unclear = _sides(history, waits)
    for seen, side, expected in ((shorter, "shorter", chance), (longer, "longer", 0.5)):
        probability = at_most(seen + unclear, count, expected)
        if probability < ERROR:
            ledger.violated(
                "RETRY-06", None, f"Of {count} delays {seen} were {side} than they would be "
                f"without jitter; with delays spread by {history.header.timing.jitter:.0%} as "
                f"promised at least {expected * count:.0f} are expected, and so few come with a "
                f"probability of {probability:.1g}, below {ERROR:g}.",
                delays=count, shorter=shorter, longer=longer, unclear=unclear,
                probability=probability)


def at_most(seen: int, count: int, chance: float) -> float:
    """The probability of at most `seen` of `count` independent events of this chance."""
    return math.fsum(math.comb(count, k) * chance ** k * (1 - chance) ** (count - k)
                     for k in range(min(seen, count) + 1))
