"""The pacemaker beats, sees a stall, and ends with its parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
from dtq_conformance import pacemaker
from dtq_conformance.history import Pace, Stall
from dtq_conformance.lab import pace_of
from dtq_conformance.pacemaker import beats
from dtq_conformance.waiting import wait_for

MS = 1_000_000
COMMAND = [sys.executable, "-I", "-S", pacemaker.__file__]


def test_it_beats_on_in_ascending_order(tmp_path: Path) -> None:
    file = tmp_path / "pace"
    with subprocess.Popen([*COMMAND, str(file)]) as process:
        wait_for(lambda: file.exists() and len(beats(file)) > 5, reason="six beats", limit_s=20)
        process.kill()
    found = beats(file)
    assert found == sorted(set(found))


def test_it_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "pace"
    parent = subprocess.Popen(["sh", "-c", '"$@" & echo $!; read wait', "sh", *COMMAND, str(file)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    process = psutil.Process(int(parent.stdout.readline()))
    wait_for(file.exists, reason="its first beat", limit_s=20)
    parent.kill()
    parent.communicate()
    wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE,
             reason="the pacemaker to end", limit_s=20)


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "pace"
    file.write_bytes(b"100\n200\n3")
    assert beats(file) == [100, 200]


def test_regular_beats_make_a_pace_and_no_stall() -> None:
    assert pace_of([0, 20 * MS, 40 * MS, 140 * MS], until_ns=150 * MS) == [
        Pace(beats=4, first_ns=0, last_ns=140 * MS, longest_gap_ms=100.0)]


def test_a_gap_of_more_than_100_ms_is_a_stall() -> None:
    assert pace_of([0, 20 * MS, 121 * MS, 140 * MS], until_ns=150 * MS) == [
        Pace(beats=4, first_ns=0, last_ns=140 * MS, longest_gap_ms=101.0),
        Stall(from_ns=20 * MS, to_ns=121 * MS)]


def test_a_stall_that_lasts_until_now_is_seen() -> None:
    assert pace_of([0, 20 * MS], until_ns=320 * MS)[1:] == [
        Stall(from_ns=20 * MS, to_ns=320 * MS)]
