"""A workload without the page: what it says, what it leaves, and how it answers bad questions."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from dtq_conformance import history
from dtq_conformance.exits import CONFORMS, HARNESS, INPUT, INTERRUPTED, UNKNOWN
from dtq_conformance.history import Fault, History, Witness
from dtq_conformance.waiting import wait_for
from dtq_load.__main__ import main
from dtq_load.workloads import WORKLOADS

from tests.load.command import COMMAND, LIMIT_S, dtq_load, only_run

pytestmark = pytest.mark.slow

TASKS = 600


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The first workload, made smaller."""
    return dtq_load("run", "burst_under_fire", "--headless", "--tasks", str(TASKS), "--seed", "5",
                    "--json", "--out", str(tmp_path_factory.mktemp("burst")))


@pytest.fixture(scope="module")
def saved(burst: subprocess.CompletedProcess[str]) -> History:
    """Its history, as read from its file."""
    return history.read(Path(only_run(burst.stdout)["folder"]) / "history.jsonl")


@pytest.mark.slow
def test_a_burst_under_fire_holds(burst: subprocess.CompletedProcess[str]) -> None:
    assert burst.returncode == CONFORMS, burst.stdout + burst.stderr
    run = only_run(burst.stdout)
    assert run["status"] == "holds"
    assert {row["clause"]: row["status"] for row in run["verdict"]["rows"]} == \
        dict.fromkeys(WORKLOADS["burst_under_fire"].clauses, "holds")


@pytest.mark.slow
def test_every_task_that_locust_submitted_is_in_the_history(saved: History) -> None:
    assert saved.header.room == "load"
    assert len(saved.accepted) == TASKS
    assert {asked[0].request["priority"] for asked in saved.submissions.values()} == set(range(10))


@pytest.mark.slow
def test_the_worker_was_killed_with_its_hands_full_and_replaced(saved: History) -> None:
    (mark,) = saved.marks
    assert mark.held, mark.sentence
    begin, bit, end = saved.of(Fault)
    assert (begin.phase, bit.phase, end.phase) == ("begin", "bit", "end")
    starts = [line for line in saved.of(Witness) if line.event == "start"]
    assert sum(line.at_ns < begin.at_ns for line in starts) >= TASKS // 4
    workers = [life for life in saved.lives if life.role == "worker"]
    assert [life.signal for life in workers if life.pid in bit.pids] == [9]
    assert [life.name for life in workers] == ["worker-1", "worker-2", "worker-3"]


@pytest.mark.slow
def test_what_it_held_was_executed_again(saved: History) -> None:
    (bit,) = (fault for fault in saved.of(Fault) if fault.phase == "bit")
    for task_id in bit.detail["in_hand"]:
        assert saved.executions[task_id][-1].pid not in bit.pids
        assert saved.executions[task_id][-1].outcome == "ok"


@pytest.mark.slow
def test_locust_counted_each_task_as_accepted_and_as_finished(
        burst: subprocess.CompletedProcess[str]) -> None:
    rows = {row["name"]: row for row in only_run(burst.stdout)["locust"]}
    assert {name: (row["count"], row["failures"]) for name, row in rows.items()} == \
        {"accepted": (TASKS, 0), "finished": (TASKS, 0)}


@pytest.mark.slow
def test_the_same_seed_submits_the_same_tasks(saved: History) -> None:
    drawn = random.Random(5)
    workload = WORKLOADS["burst_under_fire"]
    assert set(saved.accepted) == {workload.submission(drawn, number).task_id
                                   for number in range(TASKS)}


@pytest.mark.slow
def test_without_its_fault_the_workload_proves_nothing(tmp_path: Path) -> None:
    done = dtq_load("run", "burst_under_fire", "--headless", "--tasks", "60", "--without-faults",
                    "--json", "--out", str(tmp_path))
    assert done.returncode == UNKNOWN, done.stdout + done.stderr
    assert only_run(done.stdout)["verdict"]["marks_missing"] == ["hands_full_at_the_kill"]
    assert "--without-faults" in only_run(done.stdout)["verdict"]["repeat"]


def test_an_interruption_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "steady_stream", "--headless", "--seconds", "60", "--out",
         str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    await_locust(process.pid)
    children = psutil.Process(process.pid).children(recursive=True)
    (lab,) = {Path(word).parent for child in children for word in child.cmdline()
              if word.endswith("/pace")}
    assert lab.is_dir()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == INTERRUPTED, errors
    _, alive = psutil.wait_procs(children, timeout=LIMIT_S)
    assert not alive
    assert not lab.exists()


def test_a_locust_that_dies_is_a_failure_of_the_harness(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "steady_stream", "--headless", "--seconds", "60", "--out",
         str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    await_locust(process.pid).kill()
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == HARNESS
    assert "Locust has ended before its test did" in errors


def await_locust(harness: int) -> psutil.Process:
    """Wait for Locust's process among the harness's children."""
    def found() -> psutil.Process | None:
        for child in psutil.Process(harness).children():
            with contextlib.suppress(psutil.Error):
                if "locust" in child.cmdline():
                    return child
        return None

    return wait_for(found, reason="Locust's process", limit_s=LIMIT_S, every_s=0.05)


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["run", "no_such", "--headless"],
     "There is no workload 'no_such'. Known are burst_under_fire, steady_stream."),
    (["serve", "--workload", "no_such"],
     "There is no workload 'no_such'. Known are burst_under_fire, steady_stream."),
    (["run", "steady_stream", "--headless", "--target", "no_such"],
     "There is no target 'no_such'. Known are reference"),
    (["run", "steady_stream", "--headless", "--broker", "no_such"],
     "There is no broker 'no_such'. Known are"),
    (["run", "steady_stream", "--headless", "--broker", "redis://127.0.0.1:1"],
     "The broker at 127.0.0.1:1 cannot be reached"),
    (["run", "steady_stream"], "--headless"),
    (["run", "steady_stream", "--headless", "--tasks", "0"], "0 is not a number from 1"),
    ([], "usage: dtq-load"),
])
def test_a_bad_question_exits_4_with_a_sentence(arguments: list[str], sentence: str,
                                                tmp_path: Path,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--out", str(tmp_path)] if arguments else []
    assert main([*arguments, *where]) == INPUT
    told = capsys.readouterr().err
    assert sentence in told
    assert "Traceback" not in told


@pytest.mark.parametrize("module", ["dtq_load", "dtq_load.run", "dtq_load.serve",
                                    "dtq_load.__main__", "dtq_load.workloads"])
def test_locust_is_not_imported_by(module: str) -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", f"import json, sys, {module}; print(json.dumps([*sys.modules]))"],
        capture_output=True, text=True, check=True)
    assert {"locust", "gevent"}.isdisjoint(json.loads(loaded.stdout))
