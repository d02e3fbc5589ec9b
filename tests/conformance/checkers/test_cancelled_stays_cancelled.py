"""cancelled_stays_cancelled: what waited is never executed, after a request no attempt begins."""

from __future__ import annotations

from typing import Any

import pytest
from dtq_conformance import lives
from dtq_conformance.checkers.cancelled_stays_cancelled import check

from tests.conformance.histories import (
    Part,
    T,
    U,
    asked,
    born,
    end,
    fault,
    history,
    killed,
    look,
    ran,
    says,
    start,
    submit,
)

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


# Interrupted in time ----------------------------------------------------------------------------

LONG = [{"sleep": 5000}]
REQUEST = [submit(steps=LONG), born(1), start(20), asked("cancel", T, at=50, said="requested")]
"""A handler that would work until 5020 is to be interrupted by 750: a heartbeat and 0.5 s later."""


def told(*parts: Part, claims: tuple[str, ...] = ("handlers",)) -> tuple[str, int, str]:
    """What is said of CANCEL-03, of a target that has handlers of both kinds."""
    verdicts = check(history(*parts, claims=["cancel", *claims]))
    return next((v.status, v.judged, v.sentence) for v in verdicts if v.clause == "CANCEL-03")


def test_a_handler_that_is_asked_to_stop_is_interrupted_in_time() -> None:
    assert told(*REQUEST, end(750, outcome="cancelled"), ENDED)[:2] == ("holds", 1)
    assert told(*REQUEST, end(751, outcome="cancelled"), ENDED)[:2] == ("violated", 1)
    assert told(*REQUEST, end(5020), look()) == (
        "violated", 1, f"Task {T} was asked to be cancelled at 50 ms, while attempt 1 by worker-1 "
        "(pid 101) executed it; its handler ended ok at 5 020 ms, and had to be cancelled 700 ms "
        "after the request.")
    assert "never ended" in told(*REQUEST, look(status="running"))[2]


def test_the_task_of_an_interrupted_handler_ends_as_cancelled() -> None:
    interrupted = [*REQUEST, end(200, outcome="cancelled")]
    assert told(*interrupted, look(status="dead_lettered"))[0] == "violated"
    assert told(*interrupted, look(status="running", at=300))[0] == "unknown"
    assert told(*interrupted, end(4000, U))[0] == "unknown"


@pytest.mark.parametrize("excuse", [
    killed(1, 700), fault("broker_away", 100, 300), fault("stopped", 100, 400, worker=1),
    [submit(U, steps=[{"block": 900}]), *ran(40, 940, U)]])
def test_who_could_not_hear_of_a_request_is_not_judged(excuse: Part) -> None:
    assert told(*REQUEST, excuse, end(5020), look())[:2] == ("unknown", 0)


def test_a_handler_that_is_over_soon_or_may_be_a_synchronous_one_is_not_judged() -> None:
    assert told(submit(steps=[{"sleep": 700}]), *REQUEST[1:], end(720), look())[1] == 0
    assert told(submit(steps=[{"block": 5000}]), *REQUEST[1:], end(5020), look())[1] == 0
    assert told(submit(steps=LONG, timeout_ms=600), *REQUEST[1:], end(620, outcome="cancelled"),
                look(status="dead_lettered"))[1] == 0
    assert told(*REQUEST, end(5020), look(), claims=())[1] == 0


# Sent again -------------------------------------------------------------------------------------

def again(what: str, *parts: Part, by: Any = ()) -> str:
    """What is said of DLV-36 when `what` is asked at 50 and again at 60, the lives told apart."""
    verdicts = check(lives.apart(history(submit(), by, parts)))
    return next(f"{v.status} {v.judged}" for v in verdicts if v.clause == "DLV-36")


def refused(what: str, code: str, *, at: int = 60, **answer: Any) -> Part:
    return asked(what, T, at=at, outcome="refused", code=code, **answer)


@pytest.mark.parametrize("code", ["UNAUTHENTICATED", "FORBIDDEN", "BROKER_UNAVAILABLE"])
def test_a_refusal_that_is_not_of_the_task_says_nothing_of_it(code: str) -> None:
    first = asked("cancel", T, at=50, said="cancelled")
    told = says(check, submit(), first, refused("cancel", code), look(status="cancelled"))
    assert not {"DLV-36", "CANCEL-08"} & told.keys()
    told = says(check, submit(), refused("cancel", code), look(status="queued"))
    assert not {"DLV-36", "CANCEL-08"} & told.keys()


def test_a_cancel_of_what_was_cancelled_finds_it_terminal() -> None:
    first = asked("cancel", T, at=50, said="cancelled")
    for second, verdict in ((refused("cancel", "TASK_TERMINAL", status="cancelled"), "holds 1"),
                            (refused("cancel", "TASK_TERMINAL"), "holds 1"),
                            (refused("cancel", "TASK_TERMINAL", status="queued"), "violated 1"),
                            (refused("cancel", "TASK_NOT_FOUND"), "violated 1"),
                            (asked("cancel", T, at=60, said="cancelled"), "violated 1"),
                            (asked("cancel", T, at=60, outcome="unknown"), "unknown 0")):
        assert again("cancel", first, second) == verdict


def test_a_second_request_finds_its_task_running_or_over() -> None:
    first, second = (asked("cancel", T, at=at, said="requested") for at in (50, 60))
    over = refused("cancel", "TASK_TERMINAL")
    assert again("cancel", first, second, born(1), ran(20, 90)) == "holds 1"
    assert again("cancel", first, over, born(1), ran(20, 90)) == "violated 1"
    assert again("cancel", first, second, born(1), ran(20, 55)) == "unknown 0"
    assert again("cancel", first, over, born(1), ran(20, 52), look(at=57)) == "holds 1"
    assert again("cancel", first, second, born(1), ran(20, 52), look(at=57)) == "violated 1"


def test_a_requeue_that_is_sent_again_finds_the_new_life() -> None:
    old = [born(1), ran(20, 30, outcome="failed"), look(status="dead_lettered", at=40,
                                                        error_class="PermanentError"),
           asked("requeue", T, at=50)]
    running = [*old, *ran(55, 900)]
    assert again("requeue", *running, refused("requeue", "NOT_REQUEUEABLE", status="running")) \
        == "holds 1"
    assert again("requeue", *running, refused("requeue", "TASK_NOT_FOUND")) == "violated 1"
    assert again("requeue", *running, refused("requeue", "NOT_REQUEUEABLE", status="queued")) \
        == "violated 1"
    assert again("requeue", *running, asked("requeue", T, at=60)) == "violated 1"
    died = [*old, *ran(52, 54, outcome="failed"), look(status="dead_lettered", at=57)]
    assert again("requeue", *died, asked("requeue", T, at=60)) == "unknown 0"
