"""What a server has counted, as differences."""

from __future__ import annotations

from dtq_load.bench.stand import Counts

BEFORE = Counts(10, 5, 6, 1.0, {"xlen": 4, "hset": 2}, {"xlen": 8, "hset": 3})
AFTER = Counts(30, 15, 26, 1.5, {"xlen": 8, "hset": 2, "del": 1}, {"xlen": 18, "hset": 3, "del": 9})


def test_a_difference_names_what_was_called_since() -> None:
    assert AFTER.since(BEFORE) == Counts(20, 10, 20, 0.5, {"xlen": 4, "del": 1},
                                         {"xlen": 10, "del": 9})


def test_what_we_asked_ourselves_is_left_out() -> None:
    look = Counts(1, 1, 1, 0.0, {"xlen": 1})
    assert AFTER.since(BEFORE).without(look, 4) == Counts(16, 6, 16, 0.5, {"del": 1},
                                                          {"xlen": 10, "del": 9})


def test_round_trips_are_the_fewer_events() -> None:
    assert AFTER.since(BEFORE).round_trips == 10
