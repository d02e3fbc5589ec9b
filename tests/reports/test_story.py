"""The story of an accused task, as a violated page tells it."""

from __future__ import annotations

from dtq_reports.read import Run
from dtq_reports.story import stories

from tests.reports import example_runs


def test_a_lost_task_is_told_from_its_submission_to_the_last_look(violated: Run) -> None:
    [told] = stories(violated)
    assert example_runs.task_id(0) in told.sentence
    assert [(event.at, event.text) for event in told.events] == [
        ("41 ms", "submitted, and accepted"),
        ("131 ms", "started: attempt 1 by worker-1 (pid 4701)"),
        ("260 ms", "its worker was killed (SIGKILL) in the middle of it: "
                   "attempt 1 by worker-1 (pid 4701)"),
        ("3 583 ms", "started: attempt 2 by worker-2 (pid 4702)"),
        ("3 700 ms", "its worker was killed (SIGKILL) in the middle of it: "
                     "attempt 2 by worker-2 (pid 4702)"),
        ("11 750 ms", "looked at last: running, attempt 2"),
    ]


def test_what_the_harness_deleted_itself_is_said_so(canary: Run) -> None:
    [told] = stories(canary)
    assert ("90 ms", "deleted from the server by the harness itself") in [
        (event.at, event.text) for event in told.events]
    assert told.events[-1].text == "looked at last: the target does not know it"


def test_a_held_run_has_no_story(held: Run) -> None:
    assert stories(held) == []
