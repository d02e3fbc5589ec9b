"""Processes forked from one that has imported what they need are as good as newly started ones."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import psutil
import pytest
from dtq_conformance import nursery as nursery_module
from dtq_conformance.nursery import (
    Child,
    Forked,
    Nursery,
    NurseryError,
    Started,
    start_apart,
    words_of,
)
from dtq_conformance.waiting import wait_for

LIMIT_S = 60.0

STORY = """
import atexit, json, os, random, sys, threading
print(json.dumps({"argv": sys.argv[1:], "name": __name__, "pid": os.getpid(),
                  "group": os.getpgrp(), "threads": threading.active_count(),
                  "session": os.getsid(0), "parent": os.getppid(), "path": sys.path[0],
                  "greeting": os.environ.get("GREETING"), "random": random.random(),
                  "open": sorted(map(int, os.listdir("/dev/fd")))}), flush=True)
print("said", file=sys.stderr)
if sys.argv[1] == "wait":
    sys.stdin.read()
    print("asked to end")
if sys.argv[1] == "late":
    atexit.register(print, "at exit")
    threading.Timer(0.2, print, ["from a thread"]).start()
if sys.argv[1] == "die":
    os.kill(os.getpid(), 9)
sys.exit(int(sys.argv[1]) if sys.argv[1].isdecimal() else 0)
"""
"""A program that tells how it was started, and does what it is told."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Modules that can be run, on the path of whatever is started."""
    tmp_path = tmp_path_factory.mktemp("programs")
    (tmp_path / "story").mkdir()
    (tmp_path / "story" / "__main__.py").write_text(f"COMMANDS = {{}}\nif __name__ == '__main__':"
                                                    f"{indent(STORY, '    ')}")
    (tmp_path / "sleeps.py").write_text("import time; time.sleep(600)")
    (tmp_path / "asks.py").write_text("from dtq_conformance.nursery import ours; "
                                      "print(ours() is not None)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(
            filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
        yield


@pytest.fixture(scope="module")
def nursery(programs: None) -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def of_its_own(programs: None) -> Iterator[Nursery]:
    """A nursery that comes to its end in the test."""
    nursery = Nursery()
    yield nursery
    nursery.close()


def ended(forked: Forked) -> tuple[str, str, int]:
    with forked.stdout, forked.stderr:
        return forked.stdout.read(), forked.stderr.read(), forked.wait()


def test_a_forked_process_has_arguments_pipes_a_group_and_an_exit_code_of_its_own(
        nursery: Nursery) -> None:
    output, errors, code = ended(nursery.start(["story", "7", "with words"]))
    told = json.loads(output)
    assert (told["argv"], told["name"], errors, code) == (["7", "with words"], "__main__",
                                                          "said\n", 7)
    assert told["group"] == told["pid"]
    assert told["threads"] == 1


def test_threads_and_exit_functions_come_to_their_end(nursery: Nursery) -> None:
    output, _, code = ended(nursery.start(["story", "late"]))
    assert (output.splitlines()[1:], code) == (["from a thread", "at exit"], 0)


def test_a_signal_that_ended_it_is_told(nursery: Nursery) -> None:
    assert ended(nursery.start(["story", "die"]))[2] == -signal.SIGKILL


def test_asked_to_end_its_stdin_ends_whatever_else_is_running(nursery: Nursery) -> None:
    first, second = nursery.start(["story", "wait"]), nursery.start(["story", "wait"])
    open_in = [json.loads(each.stdout.readline())["open"] for each in (first, second)]
    assert len(open_in[0]) == len(open_in[1]), "the second holds something of the first's"
    for each in (first, second):
        each.terminate()
        each.terminate()
        assert ended(each) == ("asked to end\n", "said\n", 0)


def test_what_cannot_be_imported_is_told_as_python_tells_it(nursery: Nursery) -> None:
    _, errors, code = ended(nursery.start(["no_such_module", "case"]))
    assert errors.splitlines()[-1] == "ImportError: No module named no_such_module"
    assert code == 1


def test_a_command_of_the_house_is_run_by_a_fork_that_has_its_modules(nursery: Nursery) -> None:
    output, errors, code = ended(nursery.start(["dtq_conformance", "case", "no_such_case"]))
    assert (output, code) == ("", 4)
    assert errors.startswith("There is no case 'no_such_case'.")


def test_requests_longer_than_a_buffer_arrive(nursery: Nursery) -> None:
    words = ["x" * 1000 for _ in range(300)]
    assert json.loads(ended(nursery.start(["story", "0", *words]))[0])["argv"][1:] == words


def test_when_the_nursery_is_gone_nothing_more_is_started(of_its_own: Nursery) -> None:
    nursery = of_its_own
    running = nursery.start(["story", "wait"])
    psutil.Process(nursery.pid).kill()
    wait_for(lambda: psutil.Process(nursery.pid).status() == psutil.STATUS_ZOMBIE,
             reason="it to end", limit_s=LIMIT_S)
    with pytest.raises(NurseryError, match="has ended before them"):
        nursery.start(["story", "0"])
    running.terminate()
    with pytest.raises(NurseryError):
        ended(running)


def test_it_ends_with_whoever_started_it(of_its_own: Nursery) -> None:
    nursery = of_its_own
    process = psutil.Process(nursery.pid)
    nursery.close()
    assert not process.is_running()


@pytest.fixture
def asked(nursery: Nursery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
          ) -> Iterator[Callable[..., tuple[int, Started]]]:
    """What `start_apart` starts where this process may ask; whoever is told gets its pid."""
    monkeypatch.setattr(nursery_module, "_ours", [nursery])
    with (tmp_path / "output").open("wb") as output, Path(os.devnull).open("rb") as nothing:
        def start(*words: str, tell: Callable[[int], None] | None = None,
                  **environment: str) -> tuple[int, Started]:
            told: list[int] = []
            started = start_apart(
                [sys.executable, "-m", *words], {**os.environ, **environment},
                stdin=nothing.fileno(), output=output.fileno(), errors=output.fileno(),
                tell=tell or told.append)
            return told[0], started

        yield start


def told_by(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "output").read_text().splitlines()[0])


def test_a_process_of_a_lab_has_a_session_an_environment_and_nothing_that_was_open(
        asked: Callable[..., tuple[int, Started]], nursery: Nursery, tmp_path: Path) -> None:
    pid, started = asked("story", "7", GREETING="seen \udce9")
    assert isinstance(started, Child)
    assert (started.wait(), started.pid) == (7, pid)
    told = told_by(tmp_path)
    assert (told["pid"], told["group"], told["session"], told["parent"]) == (
        pid, pid, pid, nursery.pid)
    assert (told["greeting"], told["threads"], told["path"]) == (
        "seen \udce9", 1, str(Path.cwd()))
    assert [number for number in told["open"] if number > 3] == []  # 3 is what lists them


def test_its_random_numbers_are_its_own(asked: Callable[..., tuple[int, Started]],
                                        tmp_path: Path) -> None:
    for _ in range(2):
        asked("story", "0")[1].wait()
    drawn = [json.loads(line)["random"] for line in
             (tmp_path / "output").read_text().splitlines() if line.startswith("{")]
    assert len(set(drawn)) == 2


def test_it_can_be_stopped_and_killed_like_any_other(
        asked: Callable[..., tuple[int, Started]]) -> None:
    pid, started = asked("sleeps")
    for number, state in ((signal.SIGSTOP, psutil.STATUS_STOPPED),
                          (signal.SIGCONT, psutil.STATUS_SLEEPING)):
        os.killpg(pid, number)
        wait_for(lambda state=state: psutil.Process(pid).status() == state,  # type: ignore[misc]
                 reason=f"it to be {state}", limit_s=LIMIT_S)
    os.killpg(pid, signal.SIGKILL)
    assert started.wait() == -signal.SIGKILL


def test_it_does_nothing_before_somebody_knows_of_it(
        asked: Callable[..., tuple[int, Started]], tmp_path: Path) -> None:
    pids = []

    def fail(pid: int) -> None:
        pids.append(pid)
        raise RuntimeError("the guard is gone")

    with pytest.raises(RuntimeError):
        asked("story", "0", tell=fail)
    wait_for(lambda: not psutil.pid_exists(pids[0]), reason="it to end", limit_s=LIMIT_S)
    assert (tmp_path / "output").read_text() == ""


def test_what_is_no_module_of_this_python_is_started_anew(
        asked: Callable[..., tuple[int, Started]], tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        started = start_apart(["sh", "-c", "exit 3"], os.environ, stdin=output.fileno(),
                              output=output.fileno(), errors=output.fileno(),
                              tell=lambda _: None)
    assert not isinstance(started, Child)
    assert started.wait() == 3


@pytest.mark.parametrize("may_ask", [True, False])
def test_a_trial_asks_only_if_it_may(programs: None, may_ask: bool) -> None:
    with contextlib.closing(Nursery(["json"] if may_ask else [])) as nursery:
        output, errors, code = ended(nursery.start(["asks"]))
    assert (output.strip(), errors, code) == (f"{may_ask}", "", 0)


@pytest.mark.parametrize(("argv", "words"), [
    ([sys.executable, "-P", "-m", "dtq_chaos", "scenario"], ["dtq_chaos", "scenario"]),
    ([sys.executable, "-m", "dtq_chaos", "scenario"], ["dtq_chaos", "scenario"]),
    ([sys.executable, "-c", "pass"], None), (["sh", "-m", "x"], None), ([], None)])
def test_only_a_module_of_this_python_is_forked(argv: list[str], words: list[str] | None) -> None:
    assert words_of(argv) == words
