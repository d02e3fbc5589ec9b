"""What several checkers read out of a history, each thing read in one way only.

Comes in: a `History`. Goes out: the last look at a task, the death of a holder, whether a look
came late enough to prove anything, and the words for times and holders in a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtq_conformance import plan
from dtq_conformance.history import Execution, Fault, History, Life, Stall
from dtq_conformance.operation import Operation
from dtq_conformance.target import TERMINAL

MS = 1_000_000
DUE_LATE_MS = 500
"""How much later than one interval of the scheduler what is due may be dealt with."""
STALLED_SHARE = 0.5
"""With more of the time than this taken by stalls, a task that is late proves nothing."""


def at(history: History, instant_ns: int) -> str:
    """An instant as words: `at 1 234 ms`, counted from the beginning of the run."""
    return f"at {ms(instant_ns - history.header.began_ns)}"


def ms(span_ns: int) -> str:
    """A time span as words, in milliseconds: `1 234 ms`."""
    return f"{span_ns // MS:,} ms".replace(",", " ")


def holder(execution: Execution) -> str:
    """Who executed: `attempt 1 by worker-1 (pid 12)`."""
    return f"attempt {execution.attempt} by {execution.worker_id} (pid {execution.pid})"


def data(execution: Execution) -> dict[str, Any]:
    """An execution as evidence."""
    return {"attempt": execution.attempt, "worker_id": execution.worker_id, "pid": execution.pid,
            "start_ns": execution.start_ns, "end_ns": execution.end_ns,
            "outcome": execution.outcome}


def request_of(history: History, task_id: str) -> dict[str, Any]:
    """What was asked for under this id: the accepted submission, else the first; {} if none."""
    asked = history.submissions.get(task_id, [])
    accepted = [operation for operation in asked if operation.outcome == "ok"]
    chosen = (accepted or asked)[:1]
    return chosen[0].request if chosen else {}


def budget(history: History, task_id: str) -> int | None:
    """`max_attempts` as submitted; None if nobody submitted it."""
    value = request_of(history, task_id).get("max_attempts")
    return value if isinstance(value, int) else None


def last_look(history: History, task_id: str) -> Operation | None:
    """The last answered look at a task; None if there was none."""
    looks = history.looks.get(task_id, [])
    return looks[-1] if looks else None


def last_word(history: History, task_id: str) -> Operation | None:
    """The last answered look at a task or, if the target shows none, the last watch."""
    watches = history.watches.get(task_id, [])
    return last_look(history, task_id) or (watches[-1] if watches else None)


def ended_as_witnessed(history: History, task_id: str) -> bool:
    """Whether a task came to its end as far as the witness file tells: its handler ended, or was
    lost with the last attempt, after which nothing has to follow."""
    request = request_of(history, task_id)
    retried = "retry" in history.header.claims
    most = budget(history, task_id)
    return any(plan.is_over(request, execution.attempt, execution.outcome, retried=retried)
               or (most is not None and execution.attempt >= most
                   and lost_holder_ns(history, execution) is not None)
               for execution in history.executions.get(task_id, []))


def life(history: History, execution: Execution) -> Life | None:
    """The process that executed, or else the worker of that name, whose child it was."""
    lived = history.life_of(execution.pid, execution.start_ns)
    return lived or next(
        (each for each in reversed(history.lives) if each.role == "worker"
         and each.name == execution.worker_id and each.start_ns <= execution.start_ns), None)


def death_ns(history: History, execution: Execution) -> int | None:
    """When the process of an execution was gone; None while it lives or if nobody saw it.

    A recorded SIGKILL counts from the instant at which it may have been sent, as soon as the
    process is known to have lived: the lab may hear of the exit later.
    """
    lived = life(history, execution)
    if lived is None or lived.exit_ns is None:
        return None
    kills = [spell.from_ns for spell in history.spells
             if spell.effect == "killed" and execution.pid in spell.pids
             and lived.start_ns <= spell.from_ns <= lived.exit_ns]
    alive_ns = execution.end_ns or execution.start_ns
    return min([lived.exit_ns, *(max(kill, alive_ns) for kill in kills)])


def lost_holder_ns(history: History, execution: Execution) -> int | None:
    """When the holder died in the middle of this execution; None if it did not."""
    return death_ns(history, execution) if execution.end_ns is None else None


def death_in_words(history: History, execution: Execution) -> str:
    """How the process of an execution ended: `was killed at 1 234 ms`."""
    lived = life(history, execution)
    gone_ns = death_ns(history, execution)
    if lived is None or gone_ns is None:
        return "is still alive"
    if lived.signal is not None:
        how = "was killed" if lived.signal == 9 else f"was ended by signal {lived.signal}"
    else:
        how = f"exited with code {lived.exit_code}"
    return f"{how} {at(history, gone_ns)}"


def over_ns(history: History, execution: Execution) -> int:
    """When an execution was over: its end, its process's death, or the end of the history."""
    if execution.end_ns is not None:
        return execution.end_ns
    gone_ns = death_ns(history, execution)
    return history.end_ns if gone_ns is None else gone_ns


def superseded(execution: Execution, executions: Iterable[Execution]) -> bool:
    """True if a later attempt of the same task had started before this execution ended."""
    return any(other.attempt > execution.attempt
               and (execution.end_ns is None or other.start_ns < execution.end_ns)
               for other in executions)


def stalled_ns(stalls: Iterable[Stall], from_ns: int, to_ns: int) -> int:
    """How much of a time span the machine stood still."""
    return sum(max(0, min(stall.to_ns, to_ns) - max(stall.from_ns, from_ns)) for stall in stalls)


def longest_stall_ns(history: History, from_ns: int, to_ns: int) -> int:
    """The longest time in a span in which the machine gave a process no heartbeat's worth of time.

    Stalls with less than one heartbeat between them count as one.
    """
    longest = 0
    begun = ended = -1
    for stall in sorted(history.stalls, key=lambda s: s.from_ns):
        if begun < 0 or stall.from_ns - ended > history.header.timing.heartbeat_ms * MS:
            begun = stall.from_ns
        ended = max(ended, stall.to_ns)
        longest = max(longest, min(ended, to_ns) - max(begun, from_ns))
    return longest


def too_early(history: History, look: Operation) -> str | None:
    """Why an unfinished task proves nothing yet at this look; None if it does, or if an earlier
    look at it did: that workers are asked to stop at the end of a run mends nothing.
    """
    same = history.watches if look.name == "watch" else history.looks
    earlier = [each for each in same.get(look.task_id or "", [])
               if each.answered_ns < look.answered_ns]
    reasons = [_too_early(history, each) for each in (look, *reversed(earlier))]
    return None if None in reasons else reasons[0]


def _too_early(history: History, look: Operation) -> str | None:
    """Why the task would prove nothing if it were unfinished at this one look.

    The target has its declared recovery time after the last fault's end, the last death of a
    worker, the task's acceptance and the moment it was due; a worker must be there; and a machine
    that stood still gave no time.
    """
    workers = [lived for lived in history.lives if lived.role == "worker"]
    if workers and all(lived.exit_ns is not None and lived.exit_ns < look.asked_ns
                       for lived in workers):
        return "no worker was left to run it"
    asked = history.submissions.get(look.task_id or "", [])
    delay_ms = request_of(history, look.task_id or "").get("delay_ms", 0)
    healed_ns = max([fault.at_ns for fault in history.of(Fault)]
                    + [lived.exit_ns for lived in workers
                       if lived.exit_ns is not None and lived.exit_ns <= look.asked_ns]
                    + [operation.answered_ns + delay_ms * MS for operation in asked],
                    default=history.header.began_ns)
    waited_ns = look.answered_ns - healed_ns
    recovery_ms = history.header.timing.recovery_ms
    if waited_ns < recovery_ms * MS:
        return (f"the last look came {ms(max(waited_ns, 0))} after the last fault, death of a "
                f"worker or submission; the target has {ms(recovery_ms * MS)} to recover")
    if mostly_stalled(history, healed_ns, look.answered_ns):
        stalled = stalled_ns(history.stalls, healed_ns, look.answered_ns)
        return (f"the machine stood still for {ms(stalled)} of the {ms(waited_ns)} that the "
                f"target had to recover")
    return None


def mostly_stalled(history: History, from_ns: int, to_ns: int) -> bool:
    """Whether stalls took so much of a span that nothing is proven by what did not come in it."""
    return stalled_ns(history.stalls, from_ns, to_ns) > STALLED_SHARE * (to_ns - from_ns)


def may_be_paused(history: History, from_ns: int, to_ns: int) -> bool:
    """Whether the queue may have been paused at any instant of a span."""
    resumed = [o.answered_ns for o in history.operations
               if o.name == "resume" and o.outcome == "ok"]
    return any(pause.name == "pause" and pause.outcome != "refused" and pause.asked_ns <= to_ns
               and min((r for r in resumed if r > pause.asked_ns), default=to_ns) >= from_ns
               for pause in history.operations)


def undisturbed_until(history: History, instant_ns: int) -> bool:
    """Whether a worker is there and nothing befell any until then: whoever leads the scheduling
    does so all the while."""
    workers = [lived for lived in history.lives if lived.role == "worker"]
    return (any(lived.start_ns < instant_ns for lived in workers)
            and not any(lived.exit_ns is not None and lived.exit_ns < instant_ns
                        for lived in workers)
            and not any(fault.at_ns < instant_ns for fault in history.of(Fault))
            and not any(stall.from_ns < instant_ns for stall in history.stalls))


def terminal(look: Operation | None) -> bool:
    """True if this look shows a state without a way out."""
    return look is not None and look.answer.get("status") in TERMINAL
