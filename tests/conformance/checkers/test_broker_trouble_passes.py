"""broker_trouble_passes: workers go on, settle without memory, and refusals say what is known."""

from __future__ import annotations

import pytest
from dtq_conformance.checkers.broker_trouble_passes import check
from dtq_conformance.history import Effect, Record

from tests.conformance.histories import (
    Part,
    T,
    U,
    V,
    absent,
    accuses,
    asked,
    born,
    dead,
    fault,
    gone,
    look,
    ran,
    says,
    stall,
    start,
    submit,
)

TROUBLES = pytest.mark.parametrize("effect", ["broker_away", "out_of_memory"])

# WORK-15 ----------------------------------------------------------------------------------------

UNDONE = look(status="queued")
WAITS = [born(1), submit(T, 3100), UNDONE]
"""A task that is submitted when trouble is over at 3 s, which worker 1 has lived through."""


def trouble(effect: Effect = "broker_away") -> list[Record]:
    return fault(effect, 1000, 3000)


@TROUBLES
def test_who_starts_new_work_in_time_has_taken_again(effect: Effect) -> None:
    assert says(check, *WAITS, trouble(effect), ran(3500, 3600)) == {"WORK-15": "holds 1"}
    assert says(check, *WAITS, trouble(effect), ran(7900, 7990)) == {"WORK-15": "holds 1"}


@TROUBLES
def test_who_idles_while_work_waits_has_not(effect: Effect) -> None:
    late = [*WAITS, trouble(effect), ran(8100, 8200)]
    assert says(check, *late) == {"WORK-15": "violated 1"}
    assert accuses(check, "WORK-15", *late) == (
        "worker-1 (pid 101) had nothing to do when the broker's trouble was over at 3 000 ms, and "
        f"started nothing within 5 000 ms, though task {T} waited.")


def test_each_worker_is_judged_by_itself() -> None:
    other = [born(2), submit(U, 3100), ran(3200, 3300, U, by=2)]
    assert says(check, *WAITS, *other, trouble()) == {"WORK-15": "violated 2"}


@pytest.mark.parametrize("excuse", [
    [look(status="cancelled")], [look(status="queued", at=7000)],
    [asked("pause", at=2000)], [gone(1, 5000, asked="terminate", code=0)],
    [start(500, U)], [fault("cut", 2500, 4000, worker=1, number=1)],
    [fault("terminated", 500, 500, worker=1, number=1)],
    [fault("broker_restarted", 3500, 4000, number=1)]], ids=repr)
def test_who_could_not_take_is_not_judged(excuse: list[Part]) -> None:
    before = [born(1), submit(T, 3100), submit(U, 400)]
    seen = [] if any(getattr(each, "name", "") == "look" for each in excuse) else [UNDONE]
    assert says(check, *before, UNDONE, trouble()) == {"WORK-15": "violated 1"}
    assert says(check, *before, *seen, trouble(), *excuse) == {}


@pytest.mark.parametrize("task", [
    submit(T, 3100, "unknown"), submit(T, 3100, delay_ms=60_000), submit(T, 6000)], ids=repr)
def test_where_nothing_waited_for_long_nobody_is_judged(task: Part) -> None:
    assert says(check, born(1), task, UNDONE, trouble()) == {}


def test_only_a_machine_that_stood_still_makes_it_unknown() -> None:
    assert says(check, *WAITS, trouble(), stall(3500, 7000)) == {"WORK-15": "unknown 1"}


def test_a_worker_that_ends_by_itself_does_not_take_again() -> None:
    assert accuses(check, "WORK-15", *WAITS, trouble(), gone(1, 1500, code=1)) == (
        "worker-1 (pid 101) ended by itself at 1 500 ms, and so took nothing more when the "
        "broker's trouble was over at 3 000 ms.")
    assert says(check, *WAITS, trouble(), gone(1, 900, code=1)) == {}


def test_a_worker_whose_task_ended_it_is_not_judged() -> None:
    kills = submit(U, 400, steps=[{"kill": True}])
    assert says(check, *WAITS, kills, start(1400, U), trouble(), gone(1, 1500, signal=9)) == {}


def test_trouble_that_is_not_over_is_not_judged() -> None:
    assert says(check, *WAITS, fault("broker_away", 1000)) == {}


# WORK-21 ----------------------------------------------------------------------------------------

ENDED = [submit(), ran(500, 1200), fault("out_of_memory", 1000, 3000)]


@pytest.mark.parametrize("shown", [
    look(at=1300), dead(at=2900), look(status="retrying", at=2900),
    look(status="running", attempt=2, at=2900)], ids=repr)
def test_an_attempt_that_is_seen_over_meanwhile_was_settled(shown: Part) -> None:
    assert says(check, *ENDED, shown) == {"WORK-21": "holds 1"}


def test_an_attempt_that_is_seen_running_long_after_its_end_was_not() -> None:
    story = [*ENDED, look(status="running", at=1300), look(status="running", at=2900), look()]
    assert says(check, *story) == {"WORK-21": "violated 1"}
    assert accuses(check, "WORK-21", *story).endswith(
        "ended ok at 1 200 ms (attempt 1 by worker-1 (pid 101)), while the server was out of "
        "memory from 1 000 ms; 1 699 ms later that was not recorded: it was still 'running'.")


@pytest.mark.parametrize("shown", [
    look(at=3100), look(status="running", at=2000), look(status="running", at=1100),
    absent(at=2900), look(status="running", attempt=None, at=2900)], ids=repr)
def test_looks_that_tell_nothing_judge_nothing(shown: Part) -> None:
    """One comes when there is memory again, one soon after the end, one before it; one does not
    know the task, and one does not say of which attempt it is."""
    assert says(check, *ENDED, shown) == {}


def test_whom_something_else_befell_need_not_settle() -> None:
    held = look(status="running", at=2900)
    assert says(check, *ENDED, held, born(1), gone(1, 1300, signal=9, asked="kill")) == {}
    assert says(check, *ENDED, held, ran(1100, 2950, attempt=2, by=2)) == {}
    assert says(check, *ENDED, held, stall(1300, 2800)) == {"WORK-21": "unknown 1"}


def test_other_trouble_lets_nobody_settle() -> None:
    assert says(check, submit(), ran(500, 1200), fault("broker_away", 1000, 3000),
                look(status="running", at=2900)) == {}


# WORK-23 ----------------------------------------------------------------------------------------

UNAVAILABLE = {"code": "BROKER_UNAVAILABLE", "message": "Nothing was done."}
LOST = {"error": "BrokerUnreachable: nobody can say"}


def refusing(*said: str) -> list[Record]:
    return fault("broker_away", 1000, 3000, refused=list(said))


def test_what_was_surely_not_carried_out_is_not_there() -> None:
    refused = submit(V, 2000, "refused", answer=UNAVAILABLE)
    assert says(check, refused, absent(V)) == {"WORK-23": "holds 1"}
    assert says(check, refused, submit(V, 4000), look(V)) == {"WORK-23": "holds 1"}
    for wrong in (look(V), ran(2500, 2600, V)):
        assert says(check, refused, wrong) == {"WORK-23": "violated 1"}
    assert accuses(check, "WORK-23", refused, look(V)) == (
        f"The submission of task {V} was refused at 2 000 ms with BROKER_UNAVAILABLE, as surely "
        "not carried out, and yet the task was there afterwards.")


def test_of_a_plain_refusal_by_the_server_somebody_can_say() -> None:
    lost = submit(V, 2000, "unknown", answer=LOST)
    assert says(check, lost, refusing("OOM", "OOM")) == {"WORK-23": "violated 1"}
    assert accuses(check, "WORK-23", lost, refusing("OOM", "OOM")) == (
        f"The submission of task {V} was asked at 1 999 ms, while the server answered each such "
        "request with OOM; at 2 000 ms it was said that nobody can say (BrokerUnreachable: nobody "
        "can say).")
    called = submit(V, 2000, "refused", answer={"code": "BROKER_UNREACHABLE"})
    assert says(check, called, refusing("OOM", "OOM")) == {"WORK-23": "violated 1"}
    assert says(check, lost, refusing("OOM", "OOM"), stall(1500, 2500)) == {
        "WORK-23": "unknown 1"}


@pytest.mark.parametrize("spell", [
    refusing("OOM"), refusing("OOM", ""), fault("broker_away", 1000, 3000),
    fault("broker_away", 1000, 1900, refused=["OOM", "OOM"])], ids=repr)
def test_where_the_server_may_have_been_silent_nobody_can_say(spell: Part) -> None:
    assert says(check, submit(V, 2000, "unknown", answer=LOST), spell) == {}


def test_other_refusals_and_successes_are_not_judged() -> None:
    full = submit(V, 2000, "refused", answer={"code": "QUEUE_FULL"})
    assert says(check, full, submit(U, 2100), refusing("OOM", "OOM")) == {}
