"""What a run's folder is read as, and which folders are refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from dtq_reports.read import ReportError, Run, latest, read_run, read_runs

from tests.reports import example_runs


def copy(run: Run, folder: Path) -> Path:
    return Path(shutil.copytree(run.folder, folder / run.folder.name))


def test_a_run_that_was_not_judged_is_refused_with_the_command_that_judges_it(
        held: Run, tmp_path: Path) -> None:
    folder = copy(held, tmp_path)
    (folder / "verdict.json").unlink()
    with pytest.raises(ReportError, match=r"never judged.*dtq-conformance judge .*history\.jsonl"):
        read_run(folder)


def test_the_verdict_of_another_run_is_refused_and_both_runs_are_named(
        held: Run, violated: Run, tmp_path: Path) -> None:
    folder = copy(held, tmp_path)
    shutil.copy(violated.folder / "verdict.json", folder)
    with pytest.raises(ReportError, match=r"of run violated-0007.*of run held-0007"):
        read_run(folder)


def test_a_history_cut_short_is_refused(held: Run, tmp_path: Path) -> None:
    folder = copy(held, tmp_path)
    lines = (folder / "history.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "history.jsonl").write_bytes(b"".join(lines[:-3]))
    with pytest.raises(ReportError, match=r"history\.jsonl"):
        read_runs(folder)


def test_a_verdict_that_is_none_is_refused(held: Run, tmp_path: Path) -> None:
    folder = copy(held, tmp_path)
    (folder / "verdict.json").write_text('{"run_id": 7}')
    with pytest.raises(ReportError, match=r"verdict\.json is not a verdict"):
        read_run(folder)


@pytest.mark.parametrize(("name", "complaint"), [("", "contains no run"),
                                                 ("absent", "There is no folder")])
def test_a_folder_without_a_run_is_refused(tmp_path: Path, name: str, complaint: str) -> None:
    with pytest.raises(ReportError, match=complaint):
        read_runs(tmp_path / name)


def test_every_run_below_a_folder_is_found(batch: Path, tmp_path: Path, held: Run) -> None:
    shutil.copytree(batch, tmp_path / "outer" / "inner")
    copy(held, tmp_path / "outer" / "other")
    assert len(read_runs(tmp_path)) == 5


def test_latest_is_the_run_or_batch_that_was_written_last(
        held: Run, batch: Path, tmp_path: Path) -> None:
    single, many = copy(held, tmp_path), Path(shutil.copytree(batch, tmp_path / "many"))
    for place, at_s in ((single, 2000.0), (many, 1000.0)):
        for path in place.rglob("history.jsonl"):
            os.utime(path, (at_s, at_s))
    assert latest(tmp_path) == single
    os.utime(many / "held-0007" / "history.jsonl", (3000.0, 3000.0))
    assert latest(tmp_path) == many


def test_latest_without_any_run_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="There is no run under"):
        latest(tmp_path / "results")


def test_the_table_has_a_row_for_each_execution_and_says_what_explains_a_further_one(
        held: Run) -> None:
    table = held.executions
    assert len(table) == 23
    assert table["number"].value_counts().to_dict() == {1: 21, 2: 2}
    again = table[table["number"] == 2]
    assert list(again["standing"]) == ["justified"] * 2
    assert list(again["cause"]) == ["died"] * 2
    assert all("killed" in sentence for sentence in again["because"])


def test_an_execution_without_an_end_lasts_until_its_process_was_killed(held: Run) -> None:
    died = held.executions[held.executions["outcome"] == "died"]
    assert list(died["end_s"]) == [0.7, 1.3] == [death.at_s for death in held.deaths]
    assert list(died["worker"]) == ["worker-1", "worker-3"]


def test_workers_that_were_stopped_when_the_run_was_over_are_no_deaths(canary: Run) -> None:
    assert len(canary.workers) == 2
    assert canary.deaths == []


def test_a_task_is_lost_only_if_the_judge_proved_it(violated: Run) -> None:
    lost = [fate.task_id for fate in violated.fates.values() if fate.lost]
    assert lost == [example_runs.task_id(0)]
    assert sum(fate.finished for fate in violated.fates.values()) == 20


def test_a_run_in_which_the_harness_deleted_a_task_is_a_control(canary: Run, held: Run) -> None:
    assert canary.is_control and canary.deleted == [example_runs.task_id(4)]
    assert not held.is_control
