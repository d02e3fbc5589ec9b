"""Each mark of an interrupted delivery, held and not held, on small histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from dtq_chaos import marks_of_delivery as marks
from dtq_chaos.faults import FAULTS
from dtq_chaos.marks import ReadMark
from dtq_conformance.history import Record

from tests.conformance.histories import T, U, born, fault, history, ran, start

Story = Sequence[Any]


def bite(name: str, at: int = 500, to: int | None = None, *, by: int | None = None,
         **detail: Any) -> list[Record]:
    """A fault of this kind, on worker `by`, that began, bit and, by `to` or at once, ended."""
    return [msgspec.structs.replace(record, fault=name, detail=detail)
            for record in fault(FAULTS[name].effect, at, at if to is None else to, worker=by)]


def taken(**detail: Any) -> list[Record]:
    return bite("lose_take_reply", by=1, **{
        "of": "take", "asks_to_stop": True, "task_id": T, "latency_ms": 250,
        "underway_ms": 40.0, **detail})


def namesake(**detail: Any) -> list[Record]:
    return bite("start_namesake", by=1, **{
        "worker": "worker-1", "namesake": "worker-2", "before": ["worker-1.a", "1"],
        "now": ["worker-1.b", "2"], "open": [T], "in_hand": [T], **detail})


def away(**detail: Any) -> list[Record]:
    return bite("restart_broker", 500, 2100, **{
        "in_hand": {"worker-1": [T], "worker-2": [U]}, "away_ms": 1600, "entries": 2, **detail})


THROUGH = [ran(100, 3000), ran(100, 3000, U, by=2)]
"""What two workers executed before, while and after the broker was away."""


def dropped(at: int = 500, groups: int = 10) -> list[Record]:
    return bite("drop_group", at, by=1, in_hand=[T], groups=groups)


HELD: list[tuple[ReadMark, Story]] = [
    (marks.take_reply_lost(), [taken(), ran(600, 700)]),
    (marks.never_saw_what_it_was_given(), [taken(), ran(600, 700, by=2)]),
    (marks.group_lost_mid_handler(), [dropped(), ran(100, 900)]),
    (marks.group_lost_mid_handler(), [dropped(), start(100)]),
    (marks.has_a_namesake(), [namesake(open=[])]),
    (marks.has_a_namesake(mid_handler=True, swept=True), [namesake(swept=True)]),
    (marks.came_back_under_its_id(), [bite("kill_worker", by=2, worker="worker-1"), ran(600, 700)]),
    (marks.broker_was_away(holders=2), [away(), *THROUGH]),
    (marks.forged_entry_was_read(), [bite("forge_entry", task_id=T, entries=0)]),
]

NOT_HELD: list[tuple[ReadMark, Story, str]] = [
    (marks.take_reply_lost(), [taken(underway_ms=260.0)], "the reply may have arrived"),
    (marks.take_reply_lost(), [taken(), ran(400, 700)], "it had started"),
    (marks.never_saw_what_it_was_given(), [taken(), ran(600, 700)], "it was given it again"),
    (marks.never_saw_what_it_was_given(), [taken(asks_to_stop=False), ran(600, 700, by=2)],
     "nobody asked it to stop"),
    (marks.group_lost_mid_handler(), [dropped(), ran(100, 400)], "it was over"),
    (marks.group_lost_mid_handler(), [dropped(), ran(100, 900, by=2)], "another worker's handler"),
    (marks.group_lost_mid_handler(), [dropped(groups=0), ran(100, 900)], "there was no group"),
    (marks.has_a_namesake(), [namesake(now=["worker-1.a", "1"])], "nobody said hello"),
    (marks.has_a_namesake(mid_handler=True), [namesake(open=[])], "nothing was running"),
    (marks.has_a_namesake(swept=True), [namesake(swept=False)], "nobody looked at consumers"),
    (marks.came_back_under_its_id(), [bite("kill_worker", by=1, worker="worker-1"),
                                      ran(600, 700)], "it was the same process"),
    (marks.came_back_under_its_id(), [bite("kill_worker", by=2, worker="worker-1"),
                                      ran(300, 400)], "it was before the kill"),
    (marks.broker_was_away(holders=2), [away(away_ms=900), *THROUGH], "for less than a lease"),
    (marks.broker_was_away(holders=2), [away(entries=1), *THROUGH], "it came back with less"),
    (marks.broker_was_away(holders=2), [away(in_hand={"worker-1": [T], "worker-2": []}),
                                        *THROUGH], "one held nothing"),
    (marks.broker_was_away(holders=2), [away(), ran(100, 3000), ran(100, 1500, U, by=2)],
     "one had ended by then"),
    (marks.forged_entry_was_read(), [bite("forge_entry", task_id=T, entries=1)], "it was left"),
]


def named(mark: ReadMark) -> str:
    return mark(history()).name


@pytest.mark.parametrize(("mark", "story"), HELD, ids=[named(mark) for mark, _ in HELD])
def test_a_mark_is_held_where_the_fault_bit_as_it_was_meant_to(
        mark: ReadMark, story: Story) -> None:
    found = mark(history(born(1, 2), *story))
    assert found.held, found.sentence
    assert found.sentence.endswith(".")
    assert msgspec.json.encode(found)


@pytest.mark.parametrize(("mark", "story", "why"), NOT_HELD,
                         ids=[f"{named(mark)}: {why}" for mark, _, why in NOT_HELD])
def test_a_mark_is_not_held_where_the_fault_bit_otherwise(
        mark: ReadMark, story: Story, why: str) -> None:
    found = mark(history(born(1, 2), *story))
    assert not found.held, f"{why}: {found.sentence}"
    assert found.sentence.endswith(".")


def test_each_mark_is_shown_held_and_not_held() -> None:
    makers = {name for name, value in vars(marks).items()
              if callable(value) and getattr(value, "__module__", "") == marks.__name__
              and not name.startswith("_")}
    assert {named(mark) for mark, _ in HELD} == makers
    assert {named(mark) for mark, _, _ in NOT_HELD} == makers
