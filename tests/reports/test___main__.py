"""The command `dtq-report`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from dtq_reports import read
from dtq_reports.__main__ import main
from dtq_reports.read import Run

pytestmark = pytest.mark.slow


def test_it_prints_the_path_of_the_page_and_exits_0_whatever_the_verdict_was(
        violated: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(violated.folder, tmp_path / "run"))
    assert main([str(folder)]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert page == folder / "report" / "report.html"
    assert "Yes." in page.read_text()


def test_json_names_the_page_the_pictures_the_status_and_the_runs(
        violated: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(violated.folder), "--json", "--out", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert Path(said["page"]).is_file() and all(Path(png).is_file() for png in said["pngs"])
    assert said["status"] == "violated"
    [run] = said["runs"]
    assert (run["run_id"], run["accepted"], run["finished"], run["killed"]) == \
        ("violated-0007", 21, 20, 2)
    assert run["lost"] == [next(iter(violated.fates))]


def test_latest_takes_the_newest_run_under_the_results(
        held: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(held.folder, tmp_path / "newest")
    monkeypatch.setattr(read, "results_folder", lambda: tmp_path)
    assert main(["latest", "--summary"]) == 0
    out = capsys.readouterr().out
    assert "Was anything lost? No." in out
    assert out.splitlines()[-1] == str(tmp_path / "newest" / "report" / "report.html")


def test_markdown_is_printed_instead_of_the_path_and_the_page_is_written_all_the_same(
        held: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(held.folder), "--markdown", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("**Was anything lost? No.**")
    assert "| status | trial |" in out
    assert "report.html" not in out
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize(("arguments", "complaint"), [
    (["absent"], "There is no folder absent"),
    ([], "the following arguments are required: RUN"),
    (["x", "--colour"], "unrecognized arguments: --colour"),
])
def test_a_bad_question_exits_4_with_a_sentence(
        arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 4
    assert complaint in capsys.readouterr().err


def test_a_run_of_a_batch_that_left_no_history_is_named_on_the_page_and_in_the_summary(
        held: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(held.folder, tmp_path / "held-0007")
    (tmp_path / "died-0008" / "logs").mkdir(parents=True)
    assert main([str(tmp_path), "--summary"]) == 0
    told = "1 run left no history, and nothing can be said of it: died-0008."
    assert told in capsys.readouterr().out
    assert told in (tmp_path / "report" / "report.html").read_text()


def test_a_run_without_a_verdict_exits_4_and_writes_nothing(
        held: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(held.folder, tmp_path / "run"))
    (folder / "verdict.json").unlink()
    assert main([str(folder)]) == 4
    assert "never judged" in capsys.readouterr().err
    assert not (folder / "report").exists()
