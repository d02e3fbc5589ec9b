"""Dead letters are complete: what failed for good has one, and each one belongs to such a task. Of
more than are to be kept, the newest are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from dtq_conformance import evidence, lives, plan
from dtq_conformance.evidence import at, holder
from dtq_conformance.history import Execution, Fault, History
from dtq_conformance.justification import befell
from dtq_conformance.operation import Operation
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DLQ-01": "All {n} tasks that failed for good are dead-lettered, with a dead letter.",
    "DLQ-02": "All {n} dead letters tell the attempts made and the class of the last error.",
    "DLQ-03": "All {n} dead letters belong to a dead-lettered task of their own.",
    "DLV-33": "All {n} entries without a record were put away as OrphanEntry and not executed.",
    "DLQ-04": "All {n} tasks that lost the holder of their last attempt are dead-lettered as "
              "WorkerLost.",
    "DLQ-09": "Of {n} dead letters the newest exist, as many as are to be kept, and no others.",
}

ORPHAN = "OrphanEntry"
"""The error class of a dead letter that belongs to no task."""

KEPT, DEFAULT_KEPT = "DTQ_DLQ_MAXLEN", 10_000


def check(history: History) -> list[Verdict]:
    """Judge tasks that failed for good by their last look, and the list of dead letters."""
    ledger = Ledger("dead_letters_complete", PROMISES)
    listing = _listing(history)
    letters = [] if listing is None else list(listing.answer.get("letters", []))
    named = {letter.get("task_id") for letter in letters}
    deaths = _deaths(history)
    for task_id in sorted(history.submissions.keys() | history.looks.keys()):
        look = evidence.last_look(history, task_id)
        why = _failed_for_good(history, task_id, look)
        if why is not None:
            _is_dead_lettered(history, ledger, task_id, look, why)
        if look is not None and look.answer.get("status") == "dead_lettered":
            _has_a_letter(history, ledger, look, listing, named, deaths)
        _is_worker_lost(history, ledger, task_id, look)
    for letter in letters:
        if letter.get("error_class") != ORPHAN or letter.get("task_id") in history.submissions:
            _is_true(history, ledger, letter, listing)
    for fault in history.of(Fault):
        if fault.effect == "forged" and fault.phase == "bit" and listing is not None:
            _is_an_orphan(history, ledger, str(fault.detail["task_id"]), letters)
    for task_id, count in sorted(Counter(str(letter.get("task_id")) for letter in letters).items()):
        if count > 1:
            ledger.violated("DLQ-03", task_id, f"Task {task_id} has {count} dead letters.",
                            count=count)
    if listing is not None and KEPT in history.header.settings:
        _are_the_newest(history, ledger, listing, deaths)
    return ledger.verdicts()


def _listing(history: History) -> Operation | None:
    """The last answered list of all dead letters."""
    asked = [operation for operation in history.operations
             if operation.name == "dead_letters" and operation.outcome == "ok"]
    return max(asked, key=lambda o: o.answered_ns, default=None)


def _failed_for_good(history: History, task_id: str, look: Operation | None) -> str | None:
    """How the last attempt failed for good, as words; None if it did not, or nobody can tell."""
    executions = history.executions.get(task_id, [])
    most = evidence.budget(history, task_id)
    if not executions or most is None:
        return None
    last = max(executions, key=lambda e: e.attempt)
    if last.end_ns is None:
        return None
    planned = plan.ending(evidence.request_of(history, task_id), last.attempt)
    if planned == "permanent" and last.outcome in ("ok", "failed"):
        how = "failed permanently"
    elif planned == "retryable" and last.outcome == "failed" and last.attempt >= most:
        how = f"failed the last of its {most} attempts"
    else:
        return None
    until_ns = history.end_ns if look is None else look.asked_ns
    if last.attempt < most and befell(history, last, until_ns) is not None:
        return None  # the failure may never have been recorded; then the task is redelivered
    return f"Task {task_id} {how} {at(history, last.end_ns)} ({holder(last)})"


def _is_dead_lettered(history: History, ledger: Ledger, task_id: str, look: Operation | None,
                      why: str) -> None:
    if look is None:
        ledger.unknown("DLQ-01", task_id, f"{why}, and no look at it was answered.")
        return
    status = look.answer.get("status")
    off = history.header.settings.get("DTQ_DLQ_ENABLED") == "false"
    if status in ("dead_lettered", "cancelled", "expired") or (off and status == "failed"):
        return
    early = evidence.too_early(history, look)
    if early is not None and look.answer and not evidence.terminal(look):
        ledger.unknown("DLQ-01", task_id, f"{why}; it is {status!r}, but {early}.")
        return
    ledger.judged("DLQ-01")
    became = f"is {status!r}" if look.answer else "is not known any more"
    ledger.violated("DLQ-01", task_id, f"{why}, but it {became} {at(history, look.answered_ns)} "
                    "instead of 'dead_lettered'.", answer=look.answer)


def _has_a_letter(history: History, ledger: Ledger, look: Operation, listing: Operation | None,
                  named: set[Any], deaths: dict[str, Death]) -> None:
    if listing is None:
        ledger.unknown("DLQ-01", look.task_id, f"Task {look.task_id} is dead-lettered, and the "
                       "list of dead letters was not answered.")
        return
    if _was_put_away(history, look) or _may_be_trimmed(history, deaths, look.task_id or ""):
        return
    ledger.judged("DLQ-01")
    if look.task_id not in named:
        ledger.violated("DLQ-01", look.task_id, f"Task {look.task_id} is 'dead_lettered' "
                        f"({look.answer.get('error_class')}) {at(history, look.answered_ns)}, but "
                        f"no dead letter had its id {at(history, listing.answered_ns)}.",
                        letters=len(named))


def _was_put_away(history: History, look: Operation) -> bool:
    """Whether the letter of a dead-lettered task went by request: a requeue, or a discard or purge
    that may have come after the task's death."""
    task_id = look.task_id or ""
    dead_ns = min(each.asked_ns for each in history.looks[task_id]
                  if each.answer.get("status") == "dead_lettered")
    signs_of_life = [each.asked_ns for each in history.looks[task_id]]
    signs_of_life += [asked.asked_ns for asked in history.submissions.get(task_id, [])[:1]]
    signs_of_life += [execution.end_ns or execution.start_ns
                      for execution in history.executions.get(task_id, [])]
    alive_ns = max((each for each in signs_of_life if each < dead_ns), default=0)
    return lives.is_past(task_id) or any(
        operation.outcome != "refused" and (
            (operation.name == "purge_dead_letters" and operation.answered_ns > alive_ns)
            or (operation.name == "discard" and operation.task_id == task_id))
        for operation in history.operations)


@dataclass(frozen=True)
class Death:
    """A task became dead-lettered after the one instant and before the other."""

    after_ns: int
    seen_ns: int


def _deaths(history: History) -> dict[str, Death]:
    """Each task that was seen dead-lettered, earlier lives too, with when that came about."""
    found = {}
    for task_id, looks in history.looks.items():
        dead = [look for look in looks if look.answer.get("status") == "dead_lettered"]
        if dead:
            last = max(history.executions.get(task_id, []), key=lambda e: e.attempt, default=None)
            signs = [look.asked_ns for look in looks if look.answered_ns < dead[0].asked_ns]
            signs += [asked.asked_ns for asked in history.submissions.get(task_id, [])[:1]]
            if last is not None:
                signs.append(last.end_ns if last.outcome == "failed" and last.end_ns
                             else last.start_ns)
            found[task_id] = Death(max(signs, default=0), dead[0].answered_ns)
    return found


def _may_be_trimmed(history: History, deaths: dict[str, Death], task_id: str) -> bool:
    """Whether as many letters as are kept may have been made after that of this task."""
    most, mine = int(history.header.settings.get(KEPT, DEFAULT_KEPT)), deaths[task_id]
    others = sum(other is not mine and other.seen_ns > mine.after_ns for other in deaths.values())
    orphans = sum(fault.effect == "forged" and fault.phase == "bit" for fault in history.of(Fault))
    return bool(others + orphans >= most)


def _are_the_newest(history: History, ledger: Ledger, listing: Operation,
                    deaths: dict[str, Death]) -> None:
    """A letter exists exactly while fewer than the limit have been made after it."""
    most, letters = int(history.header.settings[KEPT]), listing.answer.get("letters", [])
    if len(deaths) <= most and len(letters) <= most:
        return  # all of them are to be kept
    when = at(history, listing.answered_ns)
    if len(letters) > most:
        ledger.violated("DLQ-09", None, f"{len(letters)} dead letters existed {when}, and "
                        f"{most} are to be kept.", letters=len(letters), most=most)
    there = {letter.get("task_id") for letter in letters}
    for task_id, death in deaths.items():
        look = evidence.last_look(history, task_id)
        if (death.seen_ns > listing.asked_ns or look is None or _was_put_away(history, look)
                or look.answer.get("status") != "dead_lettered"):
            continue
        ledger.judged("DLQ-09")
        newer = [each for each, other in deaths.items()
                 if each in there and other.after_ns > death.seen_ns]
        story = f"Task {task_id} was dead-lettered by {at(history, death.seen_ns)[3:]}"
        if task_id in there and len(newer) >= most:
            ledger.violated("DLQ-09", task_id, f"{story}, and its letter existed {when}, beside "
                            f"{len(newer)} newer ones; {most} are to be kept.", newer=newer[:5])
        elif task_id not in there and not _may_be_trimmed(history, deaths, task_id):
            ledger.violated("DLQ-09", task_id, f"{story}, and its letter did not exist {when}, "
                            f"although fewer than {most} can be newer.", most=most)


def _is_true(history: History, ledger: Ledger, letter: dict[str, Any],
             listing: Operation | None) -> None:
    task_id = str(letter.get("task_id"))
    when = at(history, listing.answered_ns) if listing is not None else ""
    look = evidence.last_look(history, task_id)
    if look is None:
        ledger.unknown("DLQ-03", task_id, f"A dead letter names task {task_id} {when}, and no "
                       "look at that task was answered.", letter=letter)
        return
    ledger.judged("DLQ-03")
    if look.answer.get("status") != "dead_lettered":
        is_ = f"is {look.answer.get('status')!r}" if look.answer else "is not known"
        ledger.violated("DLQ-03", task_id, f"A dead letter names task {task_id} {when}, but that "
                        f"task {is_} {at(history, look.answered_ns)}.", letter=letter,
                        answer=look.answer)
        return
    ledger.judged("DLQ-02")
    witnessed = max((e.attempt for e in history.executions.get(task_id, [])), default=0)
    made, told = letter.get("attempts_made"), letter.get("error_class")
    # An attempt is spent when it is taken: the record may know of one that never started.
    if made not in (witnessed, look.answer.get("attempt")) or not made or made < witnessed:
        ledger.violated("DLQ-02", task_id, f"The dead letter of task {task_id} {when} tells of "
                        f"{made!r} attempts; {witnessed} was the highest that was started and "
                        f"{look.answer.get('attempt')} the one that the task shows.",
                        letter=letter, witnessed=witnessed)
    if not told or told != look.answer.get("error_class"):
        ledger.violated("DLQ-02", task_id, f"The dead letter of task {task_id} {when} gives the "
                        f"error class {told!r}; the task shows "
                        f"{look.answer.get('error_class')!r}.", letter=letter,
                        answer=look.answer)


def _is_an_orphan(history: History, ledger: Ledger, task_id: str,
                  letters: list[dict[str, Any]]) -> None:
    """An entry that the harness added, of a task that has no record."""
    ledger.judged("DLV-33")
    executions = history.executions.get(task_id, [])
    classes = [letter.get("error_class") for letter in letters if letter.get("task_id") == task_id]
    if executions:
        ledger.violated("DLV-33", task_id, f"Task {task_id} has an entry and no record, and was "
                        f"executed {at(history, executions[0].start_ns)} "
                        f"({holder(executions[0])}).", execution=evidence.data(executions[0]))
    elif classes != [ORPHAN]:
        ledger.violated("DLV-33", task_id, f"Task {task_id} has an entry and no record; its dead "
                        f"letters are of the classes {classes}, not one of {ORPHAN}.",
                        classes=classes)


def _is_worker_lost(history: History, ledger: Ledger, task_id: str,
                    look: Operation | None) -> None:
    executions = history.executions.get(task_id, [])
    most = evidence.budget(history, task_id)
    lost = _lost_the_last(history, executions, most)
    if lost is None:
        return
    last, gone_ns = lost
    story = (f"Task {task_id} lost the holder of its last attempt: {holder(last)} "
             f"{evidence.death_in_words(history, last)}")
    after = [e for e in executions if e.start_ns > last.start_ns]
    if after:
        ledger.judged("DLQ-04")
        ledger.violated("DLQ-04", task_id, f"{story}, and it was started again "
                        f"{at(history, after[0].start_ns)} ({holder(after[0])}).",
                        last=evidence.data(last), again=evidence.data(after[0]))
        return
    if look is None or look.asked_ns < gone_ns:
        ledger.unknown("DLQ-04", task_id, f"{story}, and no look came after that.")
        return
    status, error_class = look.answer.get("status"), look.answer.get("error_class")
    early = evidence.too_early(history, look)
    if early is not None and look.answer and not evidence.terminal(look):
        ledger.unknown("DLQ-04", task_id, f"{story}; it is {status!r}, but {early}.")
        return
    ledger.judged("DLQ-04")
    if (status, error_class) != ("dead_lettered", "WorkerLost") and status not in (
            "cancelled", "expired"):
        ledger.violated("DLQ-04", task_id, f"{story}; it is {status!r} with the error class "
                        f"{error_class!r} {at(history, look.answered_ns)}, and had to be "
                        "'dead_lettered' with WorkerLost.", answer=look.answer,
                        last=evidence.data(last))


def _lost_the_last(history: History, executions: list[Execution],
                   most: int | None) -> tuple[Execution, int] | None:
    """The execution of a task's last attempt and its holder's death, if the holder died in it."""
    for execution in executions:
        gone_ns = evidence.lost_holder_ns(history, execution)
        if (most is not None and execution.attempt >= most and gone_ns is not None
                and not _was_over(history, execution, gone_ns)):
            return execution, gone_ns
    return None


def _was_over(history: History, execution: Execution, gone_ns: int) -> bool:
    """True if the attempt may have been settled at its time limit before its process died."""
    befallen = befell(history, execution, gone_ns - 1)
    return befallen is not None and befallen.cause == "past_its_limit"
