"""cancelled_stays_cancelled: what waited is never executed, after a request no attempt begins."""

from __future__ import annotations

from dtq_conformance.checkers.cancelled_stays_cancelled import check

from tests.conformance.histories import T, asked, born, killed, look, ran, says, start, submit

ENDED = look(status="cancelled", by=None)


def test_a_task_that_waited_is_cancelled_and_never_started() -> None:
    cancel = asked("cancel", T, at=50, said="cancelled")
    assert says(check, submit(), cancel, ENDED) == {"CANCEL-01": "holds 1"}
    assert says(check, submit(), cancel, ENDED, ran(60, 70)) == {"CANCEL-01": "violated 1"}
    assert says(check, submit(), cancel, look()) == {"CANCEL-01": "violated 1"}
    assert says(check, submit(), cancel) == {"CANCEL-01": "unknown 1"}


def test_after_a_request_no_attempt_begins() -> None:
    begun = [submit(), born(1, 2), start(20), asked("cancel", T, at=50, said="requested"),
             killed(1, 60)]
    assert says(check, *begun, ENDED) == {"CANCEL-05": "holds 1"}
    again = start(1300, attempt=2, by=2)
    assert says(check, *begun, again, ENDED) == {"CANCEL-05": "violated 1"}
    assert says(check, *begun, look(status="dead_lettered")) == {"CANCEL-05": "violated 2"}
    assert says(check, *begun, look(status="running", at=70))["CANCEL-05"] == "unknown 1"


def test_what_was_taken_before_the_request_may_start_a_little_later() -> None:
    assert says(check, submit(), born(1), asked("cancel", T, at=50, said="requested"),
                ran(55, 90), look()) == {"CANCEL-06": "holds 1"}


def test_a_success_after_a_request_needs_an_execution() -> None:
    request = asked("cancel", T, at=50, said="requested")
    assert says(check, submit(), ran(20, 90), request, look())["CANCEL-06"] == "holds 1"
    assert says(check, submit(), start(20), request, look())["CANCEL-06"] == "violated 1"


def test_a_refused_cancellation_was_of_a_task_that_was_over() -> None:
    refusal = asked("cancel", T, at=50, outcome="refused", code="TASK_TERMINAL")
    assert says(check, submit(), refusal, look()) == {"CANCEL-08": "holds 1"}
    assert says(check, submit(), refusal, look(status="queued"))["CANCEL-08"] == "violated 1"


def test_a_task_whose_submission_is_unanswered_may_be_unknown() -> None:
    unknown = asked("cancel", T, at=50, outcome="refused", code="TASK_NOT_FOUND")
    assert says(check, submit(at=60), unknown, look(status="queued")) == {}
    assert says(check, submit(at=40), unknown, look(status="queued"))["CANCEL-08"] == "violated 1"


def test_a_purge_cancels_what_waits_and_leaves_what_runs() -> None:
    purge = asked("purge", at=50, said=1)
    waited = [submit(), look(status="queued", at=40)]
    assert says(check, *waited, purge, ENDED) == {"CANCEL-09": "holds 1"}
    assert says(check, *waited, purge, ran(1100, 1110), look()) == {"CANCEL-09": "violated 1"}
    assert says(check, *waited, purge, look(status="queued", at=55), ran(60, 70), look()) == {
        "CANCEL-09": "violated 1"}
    assert says(check, *waited, purge, ran(60, 70), look()) == {}  # taken before, started after
    assert says(check, *waited, ran(45, 70), purge, look()) == {"CANCEL-09": "holds 1"}
    runs = [submit(), born(1), ran(20, 90), purge]
    assert says(check, *runs, look()) == {"CANCEL-09": "holds 1"}
    assert says(check, *runs, ENDED) == {"CANCEL-09": "violated 1"}


def test_an_attempt_that_was_taken_before_the_request_may_start_after_it() -> None:
    """Attempt 1 had failed already, so that its retry may have been in a worker's hands."""
    request = asked("cancel", T, at=50, said="requested")
    failed = [submit(), ran(20, 30, outcome="failed"), request]
    second, third = ran(55, 60, attempt=2), ran(65, 70, attempt=3)
    assert says(check, *failed, second, look(attempt=2))["CANCEL-06"] == "holds 1"
    assert says(check, *failed, second, look(attempt=2))["CANCEL-05"] == "holds 1"
    assert says(check, *failed, second, third, look(attempt=3))["CANCEL-05"] == "violated 1"
