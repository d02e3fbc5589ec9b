"""The plot of executions per task: its title, its rows, and the reasons it gives."""

from __future__ import annotations

from dataclasses import replace

from dtq_conformance.history import Process
from dtq_conformance.justification import Cause
from dtq_reports.plots import executions_per_task
from dtq_reports.plots.executions_per_task import AFTER
from dtq_reports.read import Run


def notes(run: Run) -> list[str]:
    drawing = executions_per_task.draw(run)
    assert drawing is not None
    return [text.get_text() for text in drawing.figure.axes[0].texts
            if " on worker-" in text.get_text()]


def test_its_title_says_how_many_were_repeated_and_why(
        held: Run, violated: Run, canary: Run) -> None:
    assert executions_per_task.title(held) == \
        "2 of 21 tasks were executed more than once, each after its worker was killed"
    assert executions_per_task.title(violated) == \
        "1 of 21 tasks was executed more than once, after its worker was killed"
    assert executions_per_task.title(canary) == "Each of 21 tasks was executed exactly once"


def test_each_further_execution_is_given_its_reason(held: Run) -> None:
    assert notes(held) == [
        "1 on worker-1; 2 on worker-2 because worker-1 was killed at 0.700 s; in the end succeeded",
        "1 on worker-3; 2 on worker-4 because worker-3 was killed at 1.300 s; in the end succeeded"]


def test_a_lost_task_stands_first_and_says_that_nothing_followed(violated: Run) -> None:
    assert notes(violated)[0].endswith("and never again: running at 11.750 s")


def test_a_repetition_without_a_cause_is_said_to_be_one(held: Run) -> None:
    records = tuple(record for record in held.history.records
                    if not (isinstance(record, Process) and record.signal == 9))
    unexplained = replace(held, history=replace(held.history, records=records))
    assert executions_per_task.title(unexplained) == \
        "2 of 21 tasks were executed more than once, 2 times without a cause"
    assert "WITHOUT A CAUSE" in notes(unexplained)[0]


def test_of_many_tasks_only_those_that_were_not_executed_once_have_a_row(burst: Run) -> None:
    drawing = executions_per_task.draw(burst)
    assert drawing is not None
    assert len(drawing.figure.axes[0].get_yticklabels()) == 8


def test_every_cause_that_the_judge_knows_has_words() -> None:
    assert set(AFTER) == set(Cause.__args__)
