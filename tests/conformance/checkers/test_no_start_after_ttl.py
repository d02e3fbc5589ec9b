"""no_start_after_ttl: what waited too long is not started, and what runs is not interrupted."""

from __future__ import annotations

from dtq_conformance.checkers.no_start_after_ttl import check

from tests.conformance.histories import T, U, asked, born, fault, look, ran, says, submit

EXPIRED = look(status="expired", by=None)


def test_no_attempt_begins_when_the_time_is_over() -> None:
    mortal = [submit(ttl_ms=400), born(1)]
    assert says(check, *mortal, EXPIRED) == {"TTL-01": "holds 1"}
    assert says(check, *mortal, ran(2000, 2100), look()) == {"TTL-01": "violated 1"}
    assert says(check, *mortal, ran(300, 350), look()) == {"TTL-01": "holds 1"}
    assert says(check, submit(), born(1), ran(2000, 2100), look()) == {}


def test_a_task_whose_time_is_over_does_not_wait_for_ever() -> None:
    mortal = [submit(ttl_ms=400), born(1)]
    assert says(check, *mortal, look(status="queued")) == {"TTL-01": "violated 1"}
    assert says(check, *mortal, look(status="queued", at=2000)) == {"TTL-01": "unknown 1"}


def test_no_task_expires_early() -> None:
    early = look(status="expired", at=100, by=None)
    assert says(check, submit(ttl_ms=400), early)["TTL-01"] == "violated 1"
    requeue = asked("requeue", f"{T}~1", at=1000)
    again = submit(at=1000, ttl_ms=400)
    assert says(check, requeue, again, look(status="expired", at=1100, by=None))[
        "TTL-02"] == "violated 1"
    assert says(check, requeue, again, EXPIRED)["TTL-02"] == "holds 1"


def test_an_attempt_that_runs_is_not_interrupted() -> None:
    begun = [submit(ttl_ms=400), born(1)]
    assert says(check, *begun, ran(100, 900), look())["TTL-03"] == "holds 1"
    assert says(check, *begun, ran(100, 900), EXPIRED)["TTL-03"] == "violated 1"
    assert says(check, *begun, ran(100, 900, outcome="cancelled"), EXPIRED)[
        "TTL-03"] == "violated 1"
    assert says(check, *begun, ran(100, 900, outcome="failed"), EXPIRED)["TTL-03"] == "holds 1"


def test_a_task_that_lost_its_holder_may_expire_when_it_is_redelivered() -> None:
    begun = [submit(ttl_ms=400), born(1)]
    stopped = fault("stopped", 110, 1990, worker=1)
    assert "TTL-03" not in says(check, *begun, ran(100, 2000), stopped, EXPIRED)
    limited = [submit(ttl_ms=400, timeout_ms=450), born(1)]
    assert "TTL-03" not in says(check, *limited, ran(100, 560, outcome="cancelled"), EXPIRED)
    request = asked("cancel", T, at=150, said="requested")
    assert "TTL-03" not in says(check, *begun, request, ran(100, 900, outcome="cancelled"))


def test_who_could_not_settle_in_time_may_find_its_task_expired() -> None:
    """It ended well while it was cut off, and the task was redelivered before it was back."""
    begun = [submit(ttl_ms=400), born(1), ran(100, 900), look(status="expired", at=2500, by=None)]
    assert says(check, *begun)["TTL-03"] == "violated 1"
    assert "TTL-03" not in says(check, *begun, fault("cut", 500, 2400, worker=1))


def test_who_was_held_up_by_another_handler_may_start_late_what_it_took_in_time() -> None:
    blocking = submit(U, steps=[{"block": 2000}])
    late = [submit(ttl_ms=400), born(1), ran(2100, 2110), look()]
    assert says(check, *late)["TTL-01"] == "violated 1"
    assert says(check, *late, blocking, ran(20, 2090, U))["TTL-01"] == "holds 1"


def test_a_task_that_is_too_old_leaves_the_schedule_when_it_is_due() -> None:
    def seen(status: str, at: int = 1600) -> str | None:
        return says(check, submit(ttl_ms=400, delay_ms=1000), born(1),
                    look(status=status, at=at, by=None)).get("TTL-05")

    assert (seen("expired"), seen("pending"), seen("queued")) == (
        "holds 1", "violated 1", "violated 1")
    assert seen("pending", at=1500) is None
