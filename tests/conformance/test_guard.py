"""The guard by itself: what it ends, what it leaves alone, and what does not end it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from dtq_conformance.guard import TOKEN_VARIABLE, Guard, GuardError, living, started_at
from dtq_conformance.waiting import wait_for

pytestmark = pytest.mark.slow

SLEEP = ["sleep", "600"]


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that a test starts; what the guard left alone is ended here."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def start(started: list[subprocess.Popen[bytes]], *, token: str | None = None,
          command: list[str] = SLEEP) -> subprocess.Popen[bytes]:
    environment = dict(os.environ) | ({TOKEN_VARIABLE: token} if token else {})
    process = subprocess.Popen(command, start_new_session=True, env=environment,
                               stdout=subprocess.PIPE)
    started.append(process)
    return process


def test_when_the_pipe_closes_the_guard_ends_each_group_and_removes_each_folder(
        tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    guard = Guard("a-token", log=tmp_path / "guard.log")
    process = start(started)
    guard.watch_group(process.pid)
    guard.watch_folder(folder)
    guard.close()
    assert process.wait(10) == -signal.SIGKILL
    assert not folder.exists()
    assert not psutil.pid_exists(guard.pid)


def test_a_process_with_the_token_is_ended_though_the_guard_never_heard_of_it(
        tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    guard = Guard("mine", log=tmp_path / "guard.log")
    mine, other, bare = start(started, token="mine"), start(started, token="other"), start(started)
    guard.close()
    assert mine.wait(10) == -signal.SIGKILL
    assert other.poll() is None
    assert bare.poll() is None


IN_THE_WINDOW = """
import os, signal, subprocess, sys
from pathlib import Path
from dtq_conformance.guard import TOKEN_VARIABLE, Guard

def stand_still():
    os.write(1, b"%d %d\\n" % (guard.pid, os.getpid()))
    os.kill(os.getpid(), signal.SIGSTOP)

guard = Guard("window", log=Path(sys.argv[1]))
subprocess.Popen(["sleep", "600"], env=dict(os.environ) | {TOKEN_VARIABLE: "window"},
                 start_new_session=True, preexec_fn=stand_still)
"""


def test_a_process_between_fork_and_exec_when_the_harness_is_killed_is_ended(
        tmp_path: Path) -> None:
    harness = subprocess.Popen(
        [sys.executable, "-c", IN_THE_WINDOW, str(tmp_path / "guard.log")],
        stdout=subprocess.PIPE)
    assert harness.stdout is not None
    guard, forked = (psutil.Process(int(pid)) for pid in harness.stdout.readline().split())
    wait_for(lambda: forked.status() == psutil.STATUS_STOPPED, reason="the window", limit_s=10)
    harness.kill()
    harness.wait(10)
    assert is_alive(guard)
    forked.resume()
    wait_for(lambda: not is_alive(forked) and not is_alive(guard), reason="both to end",
             limit_s=60)


def is_alive(process: psutil.Process) -> bool:
    """Whether it is there and not a zombie."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def test_signals_that_ask_do_not_end_the_guard(
        tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    guard = Guard("a-token", log=tmp_path / "guard.log")
    process = start(started)
    guard.watch_group(process.pid)
    wait_for(lambda: signals_ignored(guard.pid), reason="the guard to ignore signals", limit_s=10)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(guard.pid, number)
    guard.close()
    assert process.wait(10) == -signal.SIGKILL


def signals_ignored(pid: int) -> bool:
    """Whether SIGHUP, SIGINT and SIGTERM are ignored. Elsewhere than on Linux: whether it reads."""
    if sys.platform != "linux":
        return psutil.Process(pid).status() == psutil.STATUS_SLEEPING
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigIgn:"):
            mask = int(line.split()[1], 16)
            return all(mask >> (number - 1) & 1
                       for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    return False


def test_a_group_whose_number_was_given_to_another_process_is_left_alone(
        started: list[subprocess.Popen[bytes]]) -> None:
    process = start(started)
    start_s = started_at(process.pid)
    assert start_s is not None
    assert [found.pid for found in living("a-token", {process.pid: start_s})] == [process.pid]
    assert living("a-token", {process.pid: start_s - 5}) == []


def test_what_a_dead_leader_left_in_its_group_is_ended(
        tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    guard = Guard("a-token", log=tmp_path / "guard.log")
    leader = start(started, command=["sh", "-c", "sleep 600 >&2 & echo $!"])
    guard.watch_group(leader.pid)
    assert leader.stdout is not None
    left = psutil.Process(int(leader.stdout.readline()))
    leader.wait(10)
    assert left.is_running()
    guard.close()
    assert not is_alive(left)


def test_a_zombie_is_not_alive(started: list[subprocess.Popen[bytes]]) -> None:
    process = start(started, token="a-token", command=["true"])
    zombie = psutil.Process(process.pid)
    wait_for(lambda: zombie.status() == psutil.STATUS_ZOMBIE, reason="a zombie", limit_s=10)
    assert living("a-token", {process.pid: started_at(process.pid)}) == []


def test_a_guard_that_is_gone_is_an_error_and_not_a_silence(tmp_path: Path) -> None:
    guard = Guard("a-token", log=tmp_path / "guard.log")
    psutil.Process(guard.pid).kill()
    with pytest.raises(GuardError, match="ended with code -9"):
        guard.close()


def test_a_folder_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    guard = Guard("a-token", log=tmp_path / "guard.log")
    file = tmp_path / "a file and no folder"
    file.touch()
    guard.watch_folder(file)
    with pytest.raises(GuardError, match="ended with code 1"):
        guard.close()
    assert "could not be removed" in (tmp_path / "guard.log").read_text()
