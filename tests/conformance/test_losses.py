"""What a power failure may have undone is judged by nobody as if it had not been."""

from __future__ import annotations

from dtq_conformance import losses
from dtq_conformance.history import Record
from dtq_conformance.operation import Operation, by_task

from tests.conformance.histories import (
    T,
    U,
    V,
    fault,
    history,
    letter,
    letters,
    look,
    ns,
    ran,
    submit,
)


def power_lost(kept: int = 1000, gone: int = 2000, back: int = 2500) -> list[Record]:
    return fault("power_lost", kept, back, kept_ns=ns(kept), gone_ns=ns(gone))


ENDED = [submit(T, 10), ran(20, 30), look(T, at=900)]
LATER = [submit(V, 3000), ran(3100, 3200, V), look(V, at=4000)]


def test_without_a_power_failure_nothing_is_left_out() -> None:
    whole = history(ENDED, fault("broker_restarted", 1000, 2000))
    assert losses.apart(whole) is whole
    assert losses.losses(whole) == []


def test_what_had_ended_long_before_and_what_came_after_is_kept() -> None:
    whole = history(ENDED, LATER, power_lost())
    assert losses.apart(whole).records == whole.records


def test_what_was_seen_to_end_in_the_last_second_or_never_is_left_out_whole() -> None:
    whole = history(ENDED, LATER, power_lost(), submit(U, 50), ran(60, 1100, U), look(U, at=1200),
                    look(U, at=5000), letters(letter(T), letter(U)))
    left = losses.apart(whole)
    assert left.whole is whole
    assert set(by_task(each for each in left.records if hasattr(each, "task_id"))) == {T, V}
    (told,) = [each for each in left.of(Operation) if each.name == "dead_letters"]
    assert told.answer == {"letters": [letter(T)]}


def test_the_doubtful_are_those_of_before_that_were_not_seen_to_have_ended() -> None:
    whole = history(ENDED, LATER, power_lost(), submit(U, 1500))
    (loss,) = losses.losses(whole)
    assert loss == losses.Loss(ns(1000), ns(2500))
    assert losses.doubtful_in(whole, loss) == {U}
