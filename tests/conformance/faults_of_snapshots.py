"""Ways to make a snapshot of a good history show half of a step, which a checker must find.

Comes in: a good history and a random source. Goes out: the records of a bad one, or None where no
snapshot offers a place for that fault. `FAULTS` has them by checker, with the broken clause.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator

from dtq_conformance.history import History
from dtq_conformance.snapshot import Alike, Snapshot, taken
from msgspec.structs import replace

from tests.conformance.alterations import Records, Seed, changed, pick


def _alike(history: History, *statuses: str) -> Iterator[tuple[Snapshot, Alike]]:
    """Tasks of these statuses in the snapshots of a history."""
    return ((snapshot, alike) for snapshot in taken(history.records) for alike in snapshot.alike
            if alike.status in statuses)


def _seen(history: History, place: tuple[Snapshot, Alike] | None,
          change: Callable[[Alike], Alike]) -> Records | None:
    """The history with one of these tasks, in this snapshot, seen otherwise."""
    if place is None:
        return None
    where, alike = place
    left = [replace(alike, count=alike.count - 1, task_ids=alike.task_ids[1:])] \
        if alike.count > 1 else []
    one = change(replace(alike, count=1, task_ids=alike.task_ids[:1]))
    others = [each for each in where.alike if each is not alike]
    return _with(history, where, replace(where, alike=[*others, *left, one]))


def _with(history: History, old: Snapshot, new: Snapshot) -> Records:
    return changed(history, lambda record: new if record is old else record)


def entry_missing(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "queued", "running")),
                 lambda alike: replace(alike, entries=0))


def retry_not_scheduled(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "retrying", "pending")),
                 lambda alike: replace(alike, members=0))


def enqueued_and_still_scheduled(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "queued")),
                 lambda alike: replace(alike, members=1))


def settled_and_not_acknowledged(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "succeeded", "dead_lettered")),
                 lambda alike: replace(alike, entries=1))


def entry_in_another_stream(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "queued", "running")),
                 lambda alike: replace(alike, entries=0, strays=1))


def entry_of_no_task(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "queued", "running")),
                 lambda alike: replace(alike, status="absent"))


def succeeded_without_a_result(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "succeeded")),
                 lambda alike: replace(alike, has_result=False))


def buried_without_a_letter(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "dead_lettered")),
                 lambda alike: replace(alike, letters=0))


def letter_before_the_end(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "running")),
                 lambda alike: replace(alike, letters=1))


def key_blocked_after_success(history: History, drawn: random.Random) -> Records | None:
    return _seen(history, pick(drawn, _alike(history, "succeeded")),
                 lambda alike: replace(alike, record="processing"))


def _with_depths(history: History) -> Iterable[Snapshot]:
    return (snapshot for snapshot in taken(history.records) if snapshot.depths)


def depth_too_high(history: History, drawn: random.Random) -> Records | None:
    where = pick(drawn, _with_depths(history))
    return where and _with(history, where, replace(where, depths=[
        replace(depth, said=depth.members + 1) for depth in where.depths]))


def depth_forgotten(history: History, drawn: random.Random) -> Records | None:
    where = pick(drawn, _with_depths(history))
    return where and _with(history, where, replace(where, depths=[
        replace(depth, said=None) for depth in where.depths]))


def hands_too_full(history: History, drawn: random.Random) -> Records | None:
    where = pick(drawn, (snapshot for snapshot in taken(history.records) if snapshot.hands))
    return where and _with(history, where, replace(where, hands=[
        replace(hands, pending=hands.concurrency + 1) for hands in where.hands]))


FAULTS: dict[str, tuple[tuple[str, Seed], ...]] = {
    "one_way_leads_to_each_unfinished_task": (
        ("DLV-12", entry_missing), ("DLV-12", retry_not_scheduled),
        ("DLV-12", enqueued_and_still_scheduled), ("DLV-12", settled_and_not_acknowledged),
        ("DLV-12", entry_in_another_stream), ("DLV-12", entry_of_no_task),
        ("DLV-13", succeeded_without_a_result), ("DLV-13", buried_without_a_letter),
        ("DLV-13", letter_before_the_end), ("DLV-13", key_blocked_after_success),
        ("KEY-06", depth_too_high), ("KEY-06", depth_forgotten), ("KEY-07", hands_too_full)),
}
