"""Nothing is left behind: at rest, the key table explains every key under the prefix.

At rest means that no task is unfinished and no worker runs. The harness then reads the key space
(`audit`); here the record of it is held against the table, row by row.
"""

from __future__ import annotations

from collections.abc import Callable

from dtq_conformance import evidence
from dtq_conformance.history import History
from dtq_conformance.key_table import (
    LEVEL,
    RULES,
    TASK,
    KeyGroup,
    KeysAtRest,
)
from dtq_conformance.target import TERMINAL
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "KEY-01": "The key table explains all {n} keys under the prefix, with their types.",
    "KEY-02": "All {n} streams of the levels are empty, and nothing is pending in them.",
    "KEY-03": "All {n} tasks that were in the schedule have left it.",
    "KEY-04": "All {n} records of tasks expire, but those of dead letters.",
    "KEY-05": "All {n} keys that live for a time have an expiry.",
}


def check(history: History) -> list[Verdict]:
    """Judge the key space of a run that came to rest."""
    ledger = Ledger("nothing_left_behind", PROMISES)
    for keys in history.of(KeysAtRest):
        busy = _not_over(history)
        if busy is not None:
            for clause in PROMISES:
                ledger.unknown(clause, busy, f"Task {busy} was not seen to be over, so the key "
                               "space was not at rest when it was read.")
            continue
        for group in keys.groups:
            _is_explained(ledger, group)
            for rows, judge in _JUDGES.items():
                if group.row in rows:
                    judge(ledger, group)
        ledger.judged("KEY-03", _scheduled(history))
    return ledger.verdicts()


def _not_over(history: History) -> str | None:
    """A task that may be unfinished; one that was never accepted may be unknown to the target."""
    accepted = set(history.accepted)
    for task_id in history.submissions:
        look = evidence.last_look(history, task_id)
        if look is None or not (evidence.terminal(look)
                                or (not look.answer and task_id not in accepted)):
            return task_id
    return None


def _scheduled(history: History) -> int:
    """How many tasks surely were in the schedule: delayed ones, and those that were retried."""
    return sum(evidence.request_of(history, task_id).get("delay_ms", 0) > 0
               or any(execution.outcome == "failed" for execution in executions[:-1])
               for task_id, executions in history.executions.items())


def _is_explained(ledger: Ledger, group: KeyGroup) -> None:
    ledger.judged("KEY-01", group.count)
    if not group.row:
        ledger.violated("KEY-01", None, f"{_told(group)} in no row of the key table.",
                        **_data(group))
    elif group.type != RULES[group.row].type:
        ledger.violated("KEY-01", None, f"{_told(group)} of type {group.type}; the key table says "
                        f"{RULES[group.row].type}.", **_data(group))


def _is_empty(ledger: Ledger, group: KeyGroup) -> None:
    ledger.judged("KEY-02", group.count)
    if group.members or group.pending:
        ledger.violated("KEY-02", _first(group), f"No task is unfinished, but {_entries(group)} "
                        f"({group.pending} pending) {_where(group)}{_tasks(group)}.",
                        **_data(group))


def _entries(group: KeyGroup) -> str:
    return "1 entry is left" if group.members == 1 else f"{group.members} entries are left"


def _where(group: KeyGroup) -> str:
    more = f" and {group.count - 1} more streams" if group.count > 1 else ""
    return f"in {group.names[0]}{more}"


def _is_gone(ledger: Ledger, group: KeyGroup) -> None:
    ledger.violated("KEY-03", _first(group), f"No task is unfinished, but {group.names[0]} still "
                    f"has {group.members} members{_tasks(group)}.", **_data(group))


def _expires_when_over(ledger: Ledger, group: KeyGroup) -> None:
    ledger.judged("KEY-04", group.count)
    keeps = group.state == "dead_lettered" and group.has_letter
    if group.state not in TERMINAL:
        wrong = f"says {group.state!r}, although no task is unfinished"
    elif keeps and group.expires:
        wrong = "expires, although its dead letter exists"
    elif not keeps and not group.expires:
        wrong = f"never expires, although the task is {group.state}"
    else:
        return
    more = f", and {group.count - 1} more like it" if group.count > 1 else ""
    ledger.violated("KEY-04", _first(group), f"The record {group.names[0]} {wrong}{more}.",
                    **_data(group))


def _has_expiry(ledger: Ledger, group: KeyGroup) -> None:
    ledger.judged("KEY-05", group.count)
    if group.state == "processing":
        ledger.violated("KEY-05", None, f"{_told(group)} still processing, although no task is "
                        "unfinished.", **_data(group))
    elif not group.expires:
        ledger.violated("KEY-05", None, f"{_told(group)} without an expiry; the key table gives "
                        "it one.", **_data(group))


def _is_bounded(ledger: Ledger, group: KeyGroup) -> None:
    most = RULES[group.row].most
    ledger.judged("KEY-05", group.count)
    if most is not None and group.members > most:
        ledger.violated("KEY-05", None, f"{group.names[0]} has {group.members} members; the key "
                        f"table allows {most}.", **_data(group))


def _rows(choose: Callable[[str], bool]) -> frozenset[str]:
    return frozenset(row for row in RULES if choose(row))


_JUDGES: dict[frozenset[str], Callable[[Ledger, KeyGroup], None]] = {
    frozenset({LEVEL}): _is_empty,
    _rows(lambda row: RULES[row].at_rest == "gone"): _is_gone,
    frozenset({TASK}): _expires_when_over,
    _rows(lambda row: RULES[row].expires != "never" and row != TASK): _has_expiry,
    _rows(lambda row: RULES[row].most is not None): _is_bounded,
}
"""What is asked of the keys of each row beyond that they are explained."""


def _told(group: KeyGroup) -> str:
    more = f" and {group.count - 1} more keys are" if group.count > 1 else " is"
    return f"The key {group.names[0]}{more}"


def _first(group: KeyGroup) -> str | None:
    return group.task_ids[0] if group.task_ids else None


def _tasks(group: KeyGroup) -> str:
    return f", of task {', '.join(group.task_ids)}" if group.task_ids else ""


def _data(group: KeyGroup) -> dict[str, object]:
    return {"row": group.row, "type": group.type, "count": group.count, "names": group.names,
            "members": group.members, "pending": group.pending, "expires": group.expires,
            "state": group.state, "task_ids": group.task_ids}
