"""Trials side by side: in order, each with its verdict or a reason, and ended in good order."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from dtq_conformance import scheduler
from dtq_conformance.scheduler import Ended, Job, side_by_side
from dtq_conformance.verdict import RunVerdict
from dtq_conformance.waiting import wait_for

from tests.conformance import scheduled
from tests.conformance.scheduled import verdict


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
    monkeypatch.setattr(scheduler, "TRIAL_LIMIT_S", 0.1)
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
        [sys.executable, "-c", "import signal\n"
         "from dtq_conformance.scheduler import end_with_parent\n"
         "end_with_parent(); print('up', flush=True); signal.pause()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    child.stdin.close()
    assert child.wait(scheduled.LIMIT_S) == -signal.SIGTERM
    child.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("trials", [["delays_are_spread"], ["delays_are_spread",
                                                            "each_retry_waits_longer"]],
                         ids=["workers started", "workers forked"])
def test_however_the_scheduler_is_ended_no_process_and_no_folder_is_left(
        tmp_path: Path, trials: list[str]) -> None:
    ways: dict[str, tuple[signal.Signals, str, int]] = {
        "deaf": (signal.SIGINT, "INT", 130), "terminated": (signal.SIGTERM, "", 130),
        "killed": (signal.SIGKILL, "", -9)}
    schedulers = {way: scheduled.begin(tmp_path / way, "dtq_conformance",
                                       *trials, ignoring=ignoring)
                  for way, (_, ignoring, _) in ways.items()}
    for started in schedulers.values():
        started.await_workers()
    for way, (number, _, _) in ways.items():
        schedulers[way].process.send_signal(number)
        schedulers[way].process.send_signal(number)  # impatience breaks no clean end off
    for way, (_, _, code) in ways.items():
        _, errors = schedulers[way].process.communicate(timeout=scheduled.LIMIT_S)
        assert (way, schedulers[way].process.returncode, errors) == (
            way, code, "" if code < 0 else "Interrupted.\n")
        schedulers[way].await_nothing_left()


def test_a_job_that_is_started_while_all_are_ended_is_ended_too() -> None:
    running = scheduler.Running()
    before = running.start(["sleep", "600"])
    running.end()
    after = running.start(["sleep", "600"])
    wait_for(lambda: (before.poll(), after.poll()) == (-15, -15), reason="both to end",
             limit_s=scheduled.LIMIT_S)
    for process in (before, after):
        process.communicate()
        running.ended(process)
