"""The checkers against thousands of generated histories: the good are cleared, the bad convicted.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pytest
from dtq_conformance import lives
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.history import History, Record
from dtq_conformance.operation import Operation
from msgspec.structs import replace

from tests.conformance import (
    faults_of_administration,
    faults_of_attempts,
    faults_of_delivery,
    faults_of_snapshots,
    faults_of_trouble,
)
from tests.conformance.alterations import Seed
from tests.conformance.generated import history_of

pytestmark = pytest.mark.slow

GOOD = 2_000
"""So many good histories; faults are put into the first of them that offer a place."""
KEPT = 300
PERMUTED = 200
EACH = 10
"""So many histories get each fault, or as many as have a place for it among the good ones."""
LEAST = 3

FAULTS = {**faults_of_delivery.FAULTS, **faults_of_attempts.FAULTS, **faults_of_snapshots.FAULTS,
          **faults_of_trouble.FAULTS, **faults_of_administration.FAULTS}

NOT_GENERATED = {"RETRY-06", "DLQ-09", "DLQ-12"}
"""Clauses that no generated history gives anything to judge: statistics over hundreds of delays
that are longer than any here, dead letters beyond a limit, and requeues of orphans' letters."""

NOT_SIMULATED = {"answers_as_promised", "broker_trouble_passes", "commands_as_promised",
                 "depth_is_exact", "fields_as_promised", "metrics_count_right",
                 "one_event_per_transition", "secrets_stay_secret",
                 "settings_checked_at_the_start", "what_was_answered_survives",
                 "handlers_as_promised", "keys_as_promised", "workers_as_promised"}
"""Checkers of what the simulated target has none of: an HTTP API, a command, events, metrics, a
log, settings, a limit of its queue, more fields of a task than the common ones, a power failure, a
server that refuses, keys, workers' and handlers' own words.
Their own tests show both sides of them."""


@lru_cache(KEPT)
def good(seed: int) -> History:
    return lives.apart(history_of(seed))


def verdicts(history: History) -> dict[str, tuple[str, int]]:
    """What each checker says of each clause: its status, and how many things it judged."""
    return {f"{name} {verdict.clause}": (verdict.status, verdict.judged)
            for name, check in CHECKERS.items() for verdict in check(history)}


def test_no_good_history_is_accused_and_every_clause_is_judged() -> None:
    accused, judged = [], set()
    for seed in range(GOOD):
        history = lives.apart(history_of(seed))
        for name, check in CHECKERS.items():
            for verdict in check(history):
                accused += [f"seed {seed}: {name}: {finding.sentence}"
                            for finding in verdict.findings if finding.status == "violated"]
                judged |= {verdict.clause} if verdict.judged else set()
    assert not accused, "\n".join(accused[:20])
    every = {verdict.clause for name, check in CHECKERS.items() if name not in NOT_SIMULATED
             for verdict in check(good(0))}
    assert every - judged == NOT_GENERATED


def test_every_checker_has_three_kinds_of_fault() -> None:
    few = {name: len(FAULTS.get(name, ())) for name in CHECKERS.keys() - NOT_SIMULATED
           if len(FAULTS.get(name, ())) < 3}
    assert not few, f"Give these checkers faults in generated histories to find: {few}"
    assert FAULTS.keys() | NOT_SIMULATED == CHECKERS.keys()
    assert not FAULTS.keys() & NOT_SIMULATED


@pytest.mark.parametrize(("checker", "clause", "fault"), [
    pytest.param(checker, clause, fault, id=f"{checker}-{fault.__name__}")
    for checker, faults in FAULTS.items() for clause, fault in faults])
def test_every_seeded_fault_is_found(checker: str, clause: str, fault: Seed) -> None:
    missed, found = [], 0
    for seed in range(GOOD):
        history = good(seed) if seed < KEPT else lives.apart(history_of(seed))
        records = fault(history, random.Random(seed))
        if records is None:
            continue
        status = {verdict.clause: verdict.status for verdict in CHECKERS[checker](
            History(history.header, tuple(records)))}
        found += 1
        missed += [] if status[clause] == "violated" else [f"seed {seed}: {status[clause]}"]
        if found == EACH:
            break
    assert found >= LEAST, f"Only {found} of {GOOD} histories have a place for {fault.__name__}."
    assert not missed


def test_the_order_of_lines_changes_no_verdict() -> None:
    for seed in range(PERMUTED):
        history = good(seed)
        records = list(history.records)
        random.Random(seed).shuffle(records)
        assert verdicts(History(history.header, tuple(records))) == verdicts(history), seed


def test_operations_on_different_tasks_may_come_in_either_order() -> None:
    swaps = 0
    for seed in range(PERMUTED):
        history = history_of(seed)
        records = sorted(history.records, key=_instant)
        swapped = _swap_neighbours(records)
        swaps += swapped
        found = lives.apart(History(history.header, tuple(records)))
        assert verdicts(found) == verdicts(good(seed)), seed
    assert swaps > PERMUTED


def _instant(record: Record) -> int:
    return record.answered_ns if isinstance(record, Operation) else getattr(record, "at_ns", 0)


def _swap_neighbours(records: list[Record]) -> int:
    """Let operations that follow each other, on different tasks, change places in time, and tell
    how many did. What a time counts from, and what comes with a key, stays."""
    timed = {record.task_id for record in records if isinstance(record, Operation) and any(
        record.request.get(field) for field in ("delay_ms", "ttl_ms", "idempotency_key"))}
    swaps = place = 0
    while place + 1 < len(records):
        first, second = records[place:place + 2]
        if (_may_swap(first, timed) and _may_swap(second, timed)
                and first.task_id != second.task_id
                and not first.name == second.name == "submit"):  # which was first is judged
            records[place:place + 2] = [_at_the_time_of(second, first),
                                        _at_the_time_of(first, second)]
            swaps += 1
            place += 1
        place += 1
    return swaps


def _may_swap(record: Any, timed: set[str | None]) -> bool:
    return isinstance(record, Operation) and record.task_id is not None and not (
        record.name == "requeue" or (record.name == "submit" and record.task_id in timed))


def _at_the_time_of(operation: Any, other: Any) -> Any:
    return replace(operation, asked_ns=other.asked_ns, answered_ns=other.answered_ns)


def test_a_seed_is_one_history() -> None:
    assert history_of(7).records == history_of(7).records
    assert history_of(7).records != history_of(8).records
