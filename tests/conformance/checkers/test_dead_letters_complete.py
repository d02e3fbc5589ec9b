"""dead_letters_complete: what failed for good has a dead letter, and each letter is true."""

from __future__ import annotations

from typing import Any

from dtq_conformance.checkers.dead_letters_complete import check

from tests.conformance.histories import (
    T,
    absent,
    accuses,
    asked,
    born,
    dead,
    end,
    fault,
    history,
    killed,
    letter,
    letters,
    look,
    ran,
    says,
    start,
    submit,
)

FAILED = [submit(steps=[{"fail": "permanent"}]), born(1), ran(20, 30, outcome="failed")]
LOST = [submit(max_attempts=2), born(1, 2, 3), start(100), killed(1, 200),
        start(1300, attempt=2, by=2), killed(2, 1400)]
LOST_LETTER = letters(letter(attempts_made=2, error_class="WorkerLost"))


def worker_lost(**fields: Any) -> Any:
    return dead(error_class="WorkerLost", **fields)


def test_a_permanent_failure_has_a_dead_letter() -> None:
    assert says(check, *FAILED, dead(), letters(letter())) == {
        "DLQ-01": "holds 1", "DLQ-02": "holds 1", "DLQ-03": "holds 1"}
    assert says(check, *FAILED, dead(), letters()) == {"DLQ-01": "violated 1"}
    assert says(check, *FAILED, dead()) == {"DLQ-01": "unknown 0"}
    assert accuses(check, "DLQ-01", *FAILED, dead(), letters()) == (
        f"Task {T} is 'dead_lettered' (PermanentError) at 60 000 ms, but no dead letter had its "
        "id at 60 010 ms.")


def test_a_purge_may_have_come_after_a_death_that_was_seen_later() -> None:
    """The task failed at 30 ms and was seen dead at 60 ms; what a purge finds in between, it takes.
    """
    def purged(at: int) -> str | None:
        return says(check, *FAILED, asked("purge_dead_letters", at=at), dead(at=60), dead(),
                    letters()).get("DLQ-01")

    assert (purged(25), purged(40), purged(70)) == ("violated 1", None, None)
    again = [asked("purge_dead_letters", at=40), submit(steps=[{"fail": "permanent"}], at=50)]
    assert "DLQ-01" not in says(check, *FAILED, *again, dead(at=60), letters())


def test_what_a_superseded_holder_does_later_is_no_sign_of_life() -> None:
    late = [start(1300, attempt=2, by=3), end(9000, attempt=2, by=3)]
    told = says(check, submit(max_attempts=2), born(3), late, worker_lost(at=5000),
                asked("purge_dead_letters", at=6000), worker_lost(), letters())
    assert "DLQ-01" not in told


def test_a_permanent_failure_shows_in_the_status() -> None:
    for seen, verdict in ((look(status="failed"), "violated 1"), (look(), "violated 1"),
                          (absent(), "violated 1"), (look(status="retrying"), "violated 1"),
                          (look(status="running", at=40), "unknown 0")):
        assert says(check, *FAILED, seen, letters())["DLQ-01"] == verdict
    assert says(check, *FAILED, letters())["DLQ-01"] == "unknown 0"
    assert says(check, *FAILED, look(status="cancelled"), letters()) == {}


def test_the_failure_of_the_last_attempt_has_a_dead_letter() -> None:
    def failed(most: int) -> dict[str, str]:
        return says(check, submit(steps=[{"fail": "retryable"}], max_attempts=most), born(1),
                    ran(20, 30, outcome="failed"), look(status="failed"), letters())

    assert failed(1) == {"DLQ-01": "violated 1"}
    assert failed(2) == {}


def test_a_failure_that_its_dying_holder_did_not_record_is_not_for_good() -> None:
    assert says(check, *FAILED, killed(1, 31), look(status="succeeded"), letters()) == {}
    assert says(check, *FAILED, fault("delayed", 25, 40, worker=1), look(), letters()) == {
        "DLQ-01": "violated 1"}


def test_a_dead_letter_tells_the_attempts_and_the_error() -> None:
    def told(**fields: Any) -> str:
        return says(check, *FAILED, dead(), letters(letter(**fields)))["DLQ-02"]

    assert told() == "holds 1"
    assert told(attempts_made=2) == "violated 1"
    assert told(attempts_made=0) == "violated 1"
    assert told(error_class="") == "violated 1"
    assert told(error_class="ValueError") == "violated 1"


def test_a_dead_letter_may_count_an_attempt_that_never_started() -> None:
    spent = worker_lost(attempt=3)
    three = letters(letter(attempts_made=3, error_class="WorkerLost"))
    assert says(check, submit(), born(1), start(100), killed(1, 200), spent, three)[
        "DLQ-02"] == "holds 1"


def test_a_dead_letter_belongs_to_a_dead_lettered_task_of_its_own() -> None:
    assert says(check, *FAILED, dead(), letters(letter(), letter()))["DLQ-03"] == "violated 2"
    assert says(check, submit(), born(1), ran(20, 30), look(), letters(letter())) == {
        "DLQ-03": "violated 1"}
    assert says(check, absent(), letters(letter())) == {"DLQ-03": "violated 1"}
    assert says(check, letters(letter())) == {"DLQ-03": "unknown 0"}


def test_a_task_that_lost_the_holder_of_its_last_attempt_is_dead_lettered_as_worker_lost() -> None:
    assert says(check, *LOST, worker_lost(attempt=2), LOST_LETTER) == {
        "DLQ-01": "holds 1", "DLQ-02": "holds 1", "DLQ-03": "holds 1", "DLQ-04": "holds 1"}
    for seen, verdict in ((dead(attempt=2), "violated 1"), (look(status="running"), "violated 1"),
                          (look(attempt=2, by=2), "violated 1"), (absent(), "violated 1"),
                          (look(status="cancelled"), "holds 1"),
                          (look(status="running", at=1500), "unknown 0"),
                          (look(status="running", at=1350), "unknown 0")):
        assert says(check, *LOST, seen)["DLQ-04"] == verdict


def test_a_spent_budget_is_not_started_again() -> None:
    again = ran(2500, 2600, attempt=3, by=3)
    assert says(check, *LOST, again, worker_lost(attempt=3))["DLQ-04"] == "violated 1"
    assert "attempt 2 by worker-2 (pid 102) was killed at 1 400 ms, and it was started again" in (
        accuses(check, "DLQ-04", *LOST, again))


def test_a_task_that_is_gone_is_missing_however_early_it_is_looked_at() -> None:
    assert says(check, *FAILED, absent(at=40), letters())["DLQ-01"] == "violated 1"
    assert says(check, *LOST, absent(at=1500))["DLQ-04"] == "violated 1"


def test_a_dead_letter_does_not_tell_of_fewer_attempts_than_were_started() -> None:
    story = [submit(steps=[{"fail": "retryable"}], max_attempts=2), born(1),
             ran(20, 30, outcome="failed"), ran(60, 70, attempt=2, outcome="failed")]
    assert says(check, *story, dead(attempt=1), letters(letter()))["DLQ-02"] == "violated 1"


FORGED = fault("forged", 50, 60, task_id=T)


def test_an_entry_without_a_record_is_put_away_as_an_orphan() -> None:
    assert says(check, FORGED, letters(letter(attempts_made=0, error_class="OrphanEntry"))) == {
        "DLV-33": "holds 1"}
    assert says(check, FORGED, letters()) == {"DLV-33": "violated 1"}
    assert says(check, FORGED, letters(letter(error_class="WorkerLost")))["DLV-33"] == "violated 1"
    executed = [FORGED, born(1), ran(100, 200), letters(letter(error_class="OrphanEntry"))]
    assert accuses(check, "DLV-33", *executed) == (
        f"Task {T} has an entry and no record, and was executed at 100 ms (attempt 1 by worker-1 "
        "(pid 101)).")


def test_an_orphan_that_is_a_known_task_is_a_dead_letter_like_any_other() -> None:
    assert says(check, submit(), born(1), ran(100, 200), look(),
                letters(letter(error_class="OrphanEntry")))["DLQ-03"] == "violated 1"


def test_a_process_that_ends_after_the_time_limit_of_its_handler_has_not_lost_it() -> None:
    overdue = [submit(timeout_ms=300, max_attempts=1), born(1), start(100), killed(1, 2000)]
    ended = [dead(error_class="TimeoutError", max_attempts=1),
             letters(letter(error_class="TimeoutError"))]
    assert "DLQ-04" not in says(check, *overdue, *ended)
    long = [submit(timeout_ms=9000, max_attempts=1), born(1), start(100), killed(1, 2000)]
    assert says(check, *long, *ended)["DLQ-04"] == "violated 1"


# More than are to be kept -----------------------------------------------------------------------

def task(number: int) -> str:
    return f"{number:032x}"


def deaths(count: int = 4, *, seen_together: bool = False) -> list[Any]:
    """Tasks 0, 1, 2 … die one after the other, each seen before the next is executed."""
    found: list[Any] = [born(1)]
    for number in range(count):
        found += [submit(task(number), steps=[{"fail": "permanent"}]),
                  ran(100 * number + 20, 100 * number + 30, task(number), "failed"),
                  dead(task(number), at=100 * (count if seen_together else number) + 50),
                  dead(task(number))]
    return found


def kept(*numbers: int, of: Any = None, more: Any = ()) -> str:
    """The verdict on DLQ-09 where two letters are kept, and the last list has these."""
    verdicts = check(history(of or deaths(), more, letters(*(letter(task(n)) for n in numbers)),
                             settings={"DTQ_DLQ_MAXLEN": "2"}))
    told = {v.clause: f"{v.status} {v.judged} {v.sentence}" for v in verdicts}
    assert told["DLQ-09"].startswith(("violated", "unknown")) or "violated" not in told["DLQ-01"]
    return told["DLQ-09"]


def test_of_more_letters_than_are_kept_the_newest_exist() -> None:
    assert kept(2, 3).startswith("holds 4")
    assert kept(1, 2, 3).startswith("violated 4 3 dead letters existed at 60 010 ms, and 2 are")
    assert f"Task {task(2)} was dead-lettered by 250 ms, and its letter did not exist" in kept(3)
    assert f"Task {task(2)} was dead-lettered by 250 ms, and its letter did not" in kept(1, 3)


def test_a_letter_with_as_many_newer_ones_as_are_kept_must_be_gone() -> None:
    assert (f"Task {task(1)} was dead-lettered by 150 ms, and its letter existed at 60 010 ms, "
            "beside 2 newer ones") in str(check(history(
                deaths(), letters(*map(letter, map(task, (1, 2, 3)))),
                settings={"DTQ_DLQ_MAXLEN": "2"})))


def test_whose_death_came_first_must_be_known() -> None:
    """Nobody looked between the deaths, and each may have been recorded late."""
    together = deaths(seen_together=True)
    assert kept(0, 1, of=together).startswith("holds 4")
    assert kept(0, of=together).startswith("holds 4")
    assert kept(of=deaths(2)).startswith("unknown 0")


def test_a_letter_that_was_put_away_makes_no_room_for_what_was_trimmed() -> None:
    assert kept(3, more=asked("discard", task(2), at=900)).startswith("holds 3")
    assert kept(1, 3, more=asked("discard", task(2), at=900)).startswith("holds 3")


def test_where_no_limit_is_set_all_letters_are_kept() -> None:
    assert says(check, deaths(), letters(letter(task(3))))["DLQ-01"] == "violated 4"
