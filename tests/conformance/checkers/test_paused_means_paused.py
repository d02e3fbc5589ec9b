"""paused_means_paused: nothing is taken in a pause, and what was in hand runs on."""

from __future__ import annotations

from dtq_conformance.checkers.paused_means_paused import check

from tests.conformance.histories import asked, born, fault, killed, look, ran, says, start, submit

PAUSE, RESUME = asked("pause", at=100), asked("resume", at=5000)


def test_what_was_submitted_in_a_pause_waits_for_its_end() -> None:
    assert says(check, PAUSE, submit(at=200), ran(5100, 5200), RESUME) == {
        "PAUSE-01": "holds 1", "PAUSE-05": "holds 1"}
    assert says(check, PAUSE, submit(at=200), ran(300, 400), RESUME)["PAUSE-01"] == "violated 1"


def test_what_was_submitted_before_may_have_been_taken_before() -> None:
    assert says(check, submit(at=90), PAUSE, ran(105, 200), RESUME) == {}


def test_a_redelivery_waits_as_well() -> None:
    lost = [submit(), born(1, 2), start(50), PAUSE, killed(1, 300), RESUME]
    assert says(check, *lost, ran(6000, 6100, attempt=2, by=2))["PAUSE-01"] == "holds 1"
    assert says(check, *lost, ran(1500, 1600, attempt=2, by=2))["PAUSE-01"] == "violated 1"


def test_what_was_in_hand_is_settled_in_the_pause() -> None:
    held = [submit(), born(1), ran(50, 500), PAUSE, RESUME]
    assert says(check, *held, look(at=4000))["PAUSE-02"] == "holds 1"
    assert says(check, *held, look(status="running", at=4000))["PAUSE-02"] == "violated 1"
    assert says(check, *held, look(status="running", at=600))["PAUSE-02"] == "holds 1"


def test_a_pause_that_was_refused_is_none() -> None:
    refused = asked("pause", at=100, outcome="refused", code="X")
    assert says(check, refused, submit(at=200), ran(300, 400), RESUME) == {}


def test_who_was_cut_off_cannot_settle_in_a_pause() -> None:
    held = [submit(), born(1), ran(20, 200), asked("pause", at=50), look(status="running", at=2400),
            asked("resume", at=2500), look()]
    assert says(check, *held)["PAUSE-02"] == "violated 1"
    assert "PAUSE-02" not in says(check, *held, fault("cut", 100, 2450, worker=1))


def test_what_is_due_in_a_pause_leaves_the_schedule_in_it() -> None:
    def seen(status: str, *parts: object) -> str | None:
        return says(check, asked("pause", at=5), submit(delay_ms=1000), born(1),
                    look(status=status, at=1600, by=None), asked("resume", at=1700),
                    *parts).get("PAUSE-03")  # type: ignore[arg-type]

    assert (seen("queued"), seen("pending"), seen("pending", killed(1, 900))) == (
        "holds 1", "violated 1", None)
