"""gives_way_to_its_namesake: a process that was replaced under its id takes nothing and exits."""

from __future__ import annotations

from dtq_conformance.checkers.gives_way_to_its_namesake import check

from tests.conformance.histories import (
    T,
    U,
    accuses,
    born,
    fault,
    gone,
    killed,
    look,
    ran,
    says,
    stall,
    submit,
)

REPLACED = [submit(), submit(U), born(1, 2), fault("replaced", 500, 500, worker=1, in_hand=[T])]
EXIT = gone(1, 2000, code=0)


def test_a_process_that_finishes_what_it_has_and_exits_gives_way() -> None:
    assert says(check, *REPLACED, ran(100, 1900), EXIT) == {"DLV-28": "holds 1"}
    assert says(check, *REPLACED, ran(1000, 1900), EXIT) == {"DLV-28": "holds 1"}
    assert says(check, *REPLACED, ran(700, 900, U), EXIT) == {"DLV-28": "holds 1"}


def test_one_that_starts_what_it_had_not_in_hand_does_not() -> None:
    taken = [*REPLACED, ran(1000, 1100, U), EXIT]
    assert says(check, *taken) == {"DLV-28": "violated 1"}
    assert accuses(check, "DLV-28", *taken) == (
        f"worker-1 (pid 101) was replaced under its id at 500 ms and started task {U} 500 ms "
        "later, which it had not in hand then.")
    assert says(check, *REPLACED, ran(1000, 1100, U, by=2), EXIT) == {"DLV-28": "holds 1"}


def test_one_that_stays_or_exits_badly_does_not() -> None:
    assert says(check, *REPLACED, look(at=9000)) == {"DLV-28": "violated 1"}
    assert says(check, *REPLACED, gone(1, 9000, code=0)) == {"DLV-28": "violated 1"}
    assert says(check, *REPLACED, gone(1, 2000, code=3)) == {"DLV-28": "violated 1"}
    assert says(check, *REPLACED, look(at=3000)) == {"DLV-28": "unknown 1"}


def test_time_in_which_the_machine_stood_still_does_not_count() -> None:
    assert says(check, *REPLACED, gone(1, 6500, code=0), stall(1000, 3000)) == {
        "DLV-28": "holds 1"}


def test_of_a_process_that_was_killed_no_exit_is_asked() -> None:
    assert says(check, *REPLACED, killed(1, 900)) == {}
