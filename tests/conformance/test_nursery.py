"""Processes forked from one that has imported what they need are as good as newly started ones."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import psutil
import pytest
from dtq_conformance.nursery import Forked, Nursery, NurseryError, words_of
from dtq_conformance.waiting import wait_for

LIMIT_S = 60.0

STORY = """
import json, os, sys, threading
print(json.dumps({"argv": sys.argv[1:], "name": __name__, "pid": os.getpid(),
                  "group": os.getpgrp(), "threads": threading.active_count(),
                  "open": sorted(map(int, os.listdir("/dev/fd")))}), flush=True)
print("said", file=sys.stderr)
if sys.argv[1] == "wait":
    sys.stdin.read()
    print("asked to end")
if sys.argv[1] == "die":
    os.kill(os.getpid(), 9)
sys.exit(int(sys.argv[1]) if sys.argv[1].isdecimal() else 0)
"""
"""A program that tells how it was started, and does what it is told."""


@pytest.fixture
def nursery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nursery]:
    (tmp_path / "story").mkdir()
    (tmp_path / "story" / "__main__.py").write_text(f"COMMANDS = {{}}\nif __name__ == '__main__':"
                                                    f"{indent(STORY, '    ')}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(
        filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
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


def test_when_the_nursery_is_gone_nothing_more_is_started(nursery: Nursery) -> None:
    running = nursery.start(["story", "wait"])
    psutil.Process(nursery.pid).kill()
    wait_for(lambda: psutil.Process(nursery.pid).status() == psutil.STATUS_ZOMBIE,
             reason="it to end", limit_s=LIMIT_S)
    with pytest.raises(NurseryError, match="has ended before them"):
        nursery.start(["story", "0"])
    running.terminate()
    with pytest.raises(NurseryError):
        ended(running)


def test_it_ends_with_whoever_started_it(nursery: Nursery) -> None:
    process = psutil.Process(nursery.pid)
    nursery.close()
    assert not process.is_running()


@pytest.mark.parametrize(("argv", "words"), [
    ([sys.executable, "-P", "-m", "dtq_chaos", "scenario"], ["dtq_chaos", "scenario"]),
    ([sys.executable, "-m", "dtq_chaos", "scenario"], ["dtq_chaos", "scenario"]),
    ([sys.executable, "-c", "pass"], None), (["sh", "-m", "x"], None), ([], None)])
def test_only_a_module_of_this_python_is_forked(argv: list[str], words: list[str] | None) -> None:
    assert words_of(argv) == words
