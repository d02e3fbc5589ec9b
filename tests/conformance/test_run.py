"""Trials side by side: what their ends mean together, and the scheduler's own end."""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from dtq_conformance import run
from dtq_conformance.bench import TargetFault
from dtq_conformance.broker import BrokerError
from dtq_conformance.exits import InputError
from dtq_conformance.lab import LabError
from dtq_conformance.run import (
    Ended,
    Job,
    code_of,
    conclude,
    exit_code,
    input_faults,
    known_names,
    seeds,
    side_by_side,
    told,
)
from dtq_conformance.target import UnknownTarget
from dtq_conformance.verdict import EXIT_CODE, RunVerdict, Status
from dtq_conformance.waiting import WaitedTooLong, wait_for

from tests.conformance import scheduled

Expects = Literal["holds", "violated"]


def verdict(status: Status, expects: Expects = "holds") -> RunVerdict:
    return RunVerdict(run_id="r", room="chaos", trial="story", target="reference", broker="b",
                      seed=7, status=status, sentence="This is what was found.", rows=(),
                      convicted_by=("nothing_lost",) if status == "violated" else (),
                      marks_missing=(), repeat="dtq-chaos run story --seed 7", expects=expects)


def ended(status: Status, expects: Expects = "holds", name: str = "story") -> Ended:
    return Ended(name, EXIT_CODE[status], Path("runs/r"), verdict(status, expects))


def failed(code: int, problem: str = "it broke") -> Ended:
    return Ended("story", code, problem=problem)


@pytest.fixture(autouse=True)
def not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


# What one end means -----------------------------------------------------------------------------

@pytest.mark.parametrize(("status", "expects", "alone", "code", "words"), [
    ("holds", "holds", False, 0, "holds"),
    ("holds", "holds", True, 0, "holds"),
    ("violated", "holds", False, 1, "violated"),
    ("violated", "holds", True, 1, "violated"),
    ("unknown", "holds", False, 2, "unknown"),
    ("unknown", "holds", True, 2, "unknown"),
    ("not claimed", "holds", False, 0, "not claimed"),
    ("not claimed", "holds", True, 0, "not claimed"),
    ("violated", "violated", False, 0, "convicted, as it must be"),
    ("violated", "violated", True, 1, "convicted, as it must be"),
    ("holds", "violated", False, 5, "not convicted, and must be"),
    ("holds", "violated", True, 5, "not convicted, and must be"),
    ("unknown", "violated", False, 2, "unknown"),
    ("unknown", "violated", True, 2, "unknown"),
    ("not claimed", "violated", False, 0, "not claimed"),
    ("not claimed", "violated", True, 0, "not claimed"),
])
def test_a_verdict_has_a_code_and_words_of_its_own(
        status: Status, expects: Expects, alone: bool, code: int, words: str) -> None:
    each = ended(status, expects)
    assert (code_of(each, alone=alone), told(each)) == (code, words)
    assert exit_code([each], alone=alone) == code
    assert each.status == status
    assert each.is_as_expected == (status == expects)


@pytest.mark.parametrize("code", [4, 5])
@pytest.mark.parametrize("alone", [False, True])
def test_a_trial_without_a_verdict_keeps_its_code_and_says_why(code: int, alone: bool) -> None:
    each = failed(code)
    assert (code_of(each, alone=alone), told(each)) == (code, "no verdict: it broke")
    assert (each.status, each.is_as_expected) == ("unknown", False)


# What several ends mean together ----------------------------------------------------------------

WORST_FIRST = (failed(5), failed(4), ended("violated"), ended("unknown"), ended("holds"))


@pytest.mark.parametrize("pair", list(itertools.permutations(range(len(WORST_FIRST)), 2)),
                         ids=str)
def test_the_worst_end_is_that_of_the_whole(pair: tuple[int, int]) -> None:
    codes = [code_of(each) for each in WORST_FIRST]
    assert exit_code([WORST_FIRST[place] for place in pair]) == codes[min(pair)]


def test_a_convicted_canary_among_others_leaves_the_whole_conforming() -> None:
    assert exit_code([ended("holds"), ended("violated", "violated")]) == 0


def test_a_canary_that_is_not_convicted_outweighs_a_violation() -> None:
    assert exit_code([ended("violated"), ended("holds", "violated")]) == 5


def test_nothing_run_is_nothing_known() -> None:
    assert exit_code([]) == 2


@pytest.mark.parametrize(("ends", "elsewhere", "in_ci"), [
    ([ended("holds")], 0, 4), ([ended("unknown")], 2, 4), ([ended("violated")], 1, 4),
    ([failed(5)], 5, 5), ([], 2, 4)])
def test_what_could_not_be_run_is_an_error_in_ci_only(
        monkeypatch: pytest.MonkeyPatch, ends: list[Ended], elsewhere: int, in_ci: int) -> None:
    assert exit_code(ends, not_run=1) == elsewhere
    monkeypatch.setenv("CI", "true")
    assert exit_code(ends, not_run=1) == in_ci


def test_the_json_tells_every_end_and_the_code_that_is_returned(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    code = conclude([ended("violated"), failed(5)], as_json=True, out=Path("runs"),
                    not_run={"other": "no proxy"})
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], told["not_run"], told["out"]) == (code, {"other": "no proxy"},
                                                                  "runs")
    convicted, broken = told["runs"]
    assert convicted["verdict"]["convicted_by"] == ["nothing_lost"]
    assert (convicted["status"], convicted["as_expected"]) == ("violated", False)
    assert convicted["folder"] == "runs/r"
    assert (broken["verdict"], broken["problem"], broken["status"]) == (None, "it broke",
                                                                        "unknown")


def test_the_table_names_the_folder_and_the_command_that_repeats_what_went_wrong(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert conclude([ended("violated"), ended("holds", name="good")], as_json=False,
                    out=Path("runs"), not_run={"other": "no proxy"}) == 1
    told = capsys.readouterr().out
    assert "story: runs/r\n  repeat with: dtq-chaos run story --seed 7\n" in told
    assert "good: " not in told
    assert "no proxy" in told
    assert "1 of 2 trials ended as they should, 1 not run" in told


# Processes side by side -------------------------------------------------------------------------

def shell(name: str, script: str) -> Job:
    return Job(name, ["sh", "-c", script])


def printing(name: str, folder: Path, code: int, found: RunVerdict) -> Job:
    folder.mkdir(parents=True)
    (folder / "verdict.json").write_bytes(msgspec.json.encode(found))
    return shell(name, f"echo '{folder}'; exit {code}")


def run_jobs(*jobs: Job, at_once: int = 4) -> list[Ended]:
    return side_by_side(jobs, at_once=at_once, progress=False)


def test_results_come_in_the_order_of_the_jobs_with_their_verdicts(tmp_path: Path) -> None:
    first, second = verdict("holds"), verdict("violated")
    jobs = [printing("first", tmp_path / "1", 0, first),
            printing("second", tmp_path / "2", 1, second)]
    slow = Job("first", ["sh", "-c", f"sleep 0.2; {jobs[0].argv[2]}"])
    assert run_jobs(slow, jobs[1]) == [Ended("first", 0, tmp_path / "1", first),
                                       Ended("second", 1, tmp_path / "2", second)]


@pytest.mark.parametrize(("script", "code", "problem"), [
    ("echo 'There is no such target.' >&2; exit 4", 4, "There is no such target."),
    ("echo Traceback >&2; echo 'ValueError: no' >&2; exit 5", 5, "ValueError: no"),
    ("exit 0", 5, "exit code 0"), ("exit 7", 5, "exit code 7"), ("kill -9 $$", 5, "exit code -9"),
    ("echo /no/such/folder; exit 0", 5, "exit code 0"),
    ("exit 130", 5, "ended after 120 s, or interrupted"),
])
def test_a_job_without_a_verdict_says_why(script: str, code: int, problem: str) -> None:
    assert run_jobs(shell("job", script)) == [Ended("job", code, problem=problem)]


def test_a_verdict_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    job = printing("job", tmp_path / "1", 0, verdict("holds"))
    (tmp_path / "1" / "verdict.json").write_text("{}")
    (found,) = run_jobs(job)
    assert (found.verdict, found.exit_code) == (None, 5)


def test_a_job_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "TRIAL_LIMIT_S", 0.1)
    (found,) = run_jobs(shell("job", "exec sleep 600"))
    assert (found.exit_code, found.verdict) == (5, None)


def test_output_longer_than_a_pipe_does_not_block_a_job() -> None:
    (found,) = run_jobs(shell("job", "yes | head -c 300000; yes | head -c 300000 >&2; exit 4"))
    assert found.exit_code == 4


def test_a_program_that_is_gone_is_raised_and_the_others_are_ended() -> None:
    with pytest.raises(FileNotFoundError):
        run_jobs(shell("long", "exec sleep 600"), Job("gone", ["no-such-command"]))


def test_progress_is_a_line_for_each_job_where_there_is_no_terminal(
        capsys: pytest.CaptureFixture[str]) -> None:
    side_by_side([shell("one", "exit 4"), shell("two", "exit 4")], at_once=1, progress=True)
    assert capsys.readouterr().err == ("1/2 one: no verdict: exit code 4\n"
                                       "2/2 two: no verdict: exit code 4\n")


def test_a_process_ends_in_good_order_when_its_parent_is_gone() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import signal; from dtq_conformance.run import end_with_parent\n"
         "end_with_parent(); print('up', flush=True); signal.pause()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    child.stdin.close()
    assert child.wait(scheduled.LIMIT_S) == -signal.SIGTERM
    child.stdout.close()


@pytest.mark.slow
def test_however_the_scheduler_is_ended_no_process_and_no_folder_is_left(tmp_path: Path) -> None:
    ways: dict[str, tuple[signal.Signals, str, int]] = {
        "deaf": (signal.SIGINT, "INT", 130), "terminated": (signal.SIGTERM, "", 130),
        "killed": (signal.SIGKILL, "", -9)}
    schedulers = {way: scheduled.begin(tmp_path / way, "dtq_conformance",
                                       "a_long_handler_keeps_its_task", ignoring=ignoring)
                  for way, (_, ignoring, _) in ways.items()}
    for scheduler in schedulers.values():
        scheduler.await_workers()
    for way, (number, _, _) in ways.items():
        schedulers[way].process.send_signal(number)
    for way, (_, _, code) in ways.items():
        _, errors = schedulers[way].process.communicate(timeout=scheduled.LIMIT_S)
        assert (way, schedulers[way].process.returncode, errors) == (
            way, code, "" if code < 0 else "Interrupted.\n")
        schedulers[way].await_nothing_left()


# What is asked ----------------------------------------------------------------------------------

def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"There is no case 'x'\. Known are a, b\."):
        known_names("case", ["a", "x"], {"a": 1, "b": 2})


def test_a_name_that_is_given_twice_counts_once() -> None:
    assert known_names("case", ["b", "a", "b"], {"a": 1, "b": 2}) == ["b", "a"]


@pytest.mark.parametrize("error", [UnknownTarget("sentence"), BrokerError("sentence"),
                                   TargetFault("sentence")], ids=repr)
def test_faults_of_target_and_broker_are_faults_of_the_input(error: Exception) -> None:
    with pytest.raises(InputError, match=r"^sentence$"), input_faults():
        raise error


@pytest.mark.parametrize("error", [WaitedTooLong("waited"), LabError("lab")], ids=repr)
def test_faults_of_the_bench_are_the_harness_failing(error: Exception) -> None:
    with pytest.raises(RuntimeError, match="the trial could not be carried out"), input_faults():
        raise error


def test_seeds_are_drawn_from_the_first_one() -> None:
    assert seeds(7, 20) == seeds(7, 20) != seeds(8, 20)
    assert len(set(seeds(7, 20))) == 20
    assert seeds(7, 3) == seeds(7, 20)[:3]


@pytest.fixture
def jobs_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[Job]]:
    """The jobs that `run_all` makes of trials, which are not run."""
    made: list[Job] = []

    def keep(jobs: list[Job], **_: Any) -> list[Ended]:
        made.extend(jobs)
        return []

    def jobs_of(*names: str, **fields: Any) -> list[Job]:
        monkeypatch.setattr(run, "side_by_side", keep)
        given = {"target": "reference", "broker": "embedded", "out": tmp_path, "seed": 7,
                 "jobs": 2, "json": True}
        run.run_all(["dtq_conformance", "case"], names, argparse.Namespace(**(given | fields)))
        return made

    return jobs_of


def test_a_trial_alone_has_the_seed_that_was_asked_for(jobs_of: Callable[..., list[Job]],
                                                       tmp_path: Path) -> None:
    (job,) = jobs_of("a")
    assert job.argv[0] == sys.executable
    assert job.argv[job.argv.index("-m"):] == [
        "-m", "dtq_conformance", "case", "a", "--target", "reference", "--broker", "embedded",
        "--out", str(tmp_path), "--seed", "7"]


def test_several_trials_have_seeds_of_their_own(jobs_of: Callable[..., list[Job]]) -> None:
    assert [job.argv[-1] for job in jobs_of("a", "b", "c")] == [str(s) for s in seeds(7, 3)]


def test_runs_that_cannot_be_written_anywhere_are_said_so_before_anything_runs(
        jobs_of: Callable[..., list[Job]], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"Runs cannot be written to .*file"):
        jobs_of("a", out=tmp_path / "file")


def test_a_job_that_is_started_while_all_are_ended_is_ended_too() -> None:
    running = run.Running()
    before = running.start(["sleep", "600"])
    running.end()
    after = running.start(["sleep", "600"])
    wait_for(lambda: (before.poll(), after.poll()) == (-15, -15), reason="both to end",
             limit_s=scheduled.LIMIT_S)
    for process in (before, after):
        process.communicate()
        running.ended(process)
