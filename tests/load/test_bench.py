"""The command `dtq-load bench`: a small real run, its order, its ends, and bad questions."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from dtq_conformance.exits import CONFORMS, HARNESS, INPUT, INTERRUPTED
from dtq_conformance.waiting import wait_for
from dtq_load.__main__ import main
from dtq_load.bench import command
from dtq_load.bench.peer import NotInstalled, Peer
from dtq_load.bench.peers import PEERS
from dtq_load.bench.results import Report
from dtq_load.bench.run import Plan, Runner, installed
from dtq_load.bench.stand import BenchError

from tests.load.bench_reports import FULL, report, row
from tests.load.command import COMMAND, LIMIT_S, dtq_load

SMALL = ("bench", "--only", "dtq", "--rounds", "1", "--tasks", "3000", "--latency-tasks", "5",
         "--depths", "300", "--take", "400", "--recovery-limit", "0")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """A real run of this engine alone."""
    folder = tmp_path_factory.mktemp("bench") / "out"
    done = dtq_load(*SMALL, "--json", "-", "--out", str(folder))
    assert done.returncode == CONFORMS, done.stdout + done.stderr
    return folder, msgspec.json.decode(done.stdout, type=Report)


@pytest.mark.slow
def test_a_small_run_measures_everything(small: tuple[Path, Report]) -> None:
    found = small[1]
    (ours,) = found.peers
    assert found.broken == {}
    assert found.ratios["one_worker_vs_reference_loop"]
    assert ours.by_command["hset"].calls_per_task > 0  # how many, so short a drain does not tell
    assert ours.figures.keys() >= {
        "one_worker_per_s", "two_workers_per_s", "submit_per_s", "submit_bulk_per_s",
        "idle_p50_ms", "idle_p95_ms", "idle_p99_ms", "commands_per_task", "round_trips_per_task",
        "client_commands_per_task", "script_commands_per_task", "worker_cpu_s_per_10k",
        "server_cpu_s_per_10k", "rss_mb", "rss_leader_mb", "cost_us_at_300"}
    # the kernel counts a process's time in ticks of 10 ms, which a small run may fall short of
    assert all(figure.median > 0 for name, figure in ours.figures.items() if "cpu" not in name)
    assert found.http.keys() == {"ingest_one_by_one_per_s", "ingest_batch_per_s",
                                 "empty_one_by_one_per_s", "empty_batch_per_s",
                                 "client_limit_per_s"}


@pytest.mark.slow
def test_what_is_counted_of_a_worker_that_takes_in_batches_is_less_than_a_round_trip_a_task(
        small: tuple[Path, Report]) -> None:
    ours = small[1].peers[0].figures
    assert ours["round_trips_per_task"].median < 1
    assert ours["client_commands_per_task"].median < ours["script_commands_per_task"].median
    assert ours["rss_leader_mb"].median < ours["rss_mb"].median


@pytest.mark.slow
def test_its_files_hold_the_same_and_the_logs(small: tuple[Path, Report]) -> None:
    folder, found = small
    assert msgspec.json.decode((folder / "bench.json").read_bytes(), type=Report) == found
    assert (folder / "bench.md").read_text().startswith("|  | dtq ")
    assert (folder / "processes" / "broker.log").exists()


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_however_it_is_ended_it_leaves_no_process(ending: signal.Signals, tmp_path: Path) -> None:
    process = subprocess.Popen([*COMMAND, *SMALL, "--tasks", "20000", "--out", str(tmp_path)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: list((tmp_path / "processes").glob("dtq-*.log")), reason="a worker",
             limit_s=LIMIT_S)
    children = descendants(process.pid)
    process.send_signal(ending)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == (INTERRUPTED if ending == signal.SIGINT else -ending)
    _, alive = psutil.wait_procs(children, timeout=LIMIT_S)
    assert not alive


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["--only", "no_such"], "There is no peer 'no_such'. Known are dtq, "),
    (["--broker", "redis://127.0.0.1:6379"], "needs one of its own"),
    (["--broker", "no_such"], "There is no broker 'no_such'."),
    (["--depths", "deep"], "--depths is 'deep'"),
    (["--rounds", "0"], "0 is not a number from 1"),
])
def test_a_bad_question_exits_4_with_a_sentence(arguments: list[str], sentence: str, tmp_path: Path,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments, "--out", str(tmp_path)]) == INPUT
    told = capsys.readouterr().err
    assert sentence in told
    assert "Traceback" not in told


def test_a_peer_that_is_not_there_is_an_error_in_ci_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert command._code(FULL) == CONFORMS
    monkeypatch.setenv("CI", "true")
    assert command._code(FULL) == INPUT
    assert command._code(report(row("dtq", rss_mb=1))) == CONFORMS


def test_a_peer_that_breaks_is_a_failure_of_the_harness() -> None:
    assert command._code(msgspec.structs.replace(FULL, broken={"huey": "It broke."})) == HARNESS


def peer(name: str, version: Callable[[], str] = lambda: "1") -> Peer:
    return replace(PEERS["dtq"], name=name, version=version)


def runner(*peers: Peer, rounds: int = 3, depths: tuple[int, ...] = ()) -> Runner:
    nowhere: Any = None
    return Runner(nowhere, Plan(peers=peers, rounds=rounds, tasks=1, latency_tasks=1,
                                depths=depths, take=1, recovery_limit_s=9, http=True))


def test_peers_take_turns_and_another_is_the_first_in_each_round() -> None:
    found = [step.about for step in runner(peer("a"), peer("b")).steps()
             if step.words.endswith(": drains")]
    assert found == ["a", "b", "b", "a", "a", "b"]


def test_what_takes_long_comes_once() -> None:
    found = [step.words for step in runner(peer("a"), rounds=2, depths=(10, 2_000)).steps()
             if "round" not in step.words]
    assert found == ["counting commands", "with 10 queued", "with 2,000 queued", "recovery"]


def test_of_a_peer_that_broke_nothing_more_is_measured_and_the_others_go_on() -> None:
    run = runner(peer("a"), peer("b"), rounds=1)
    done: list[str] = []

    def measuring(about: str, *, breaks: bool) -> Callable[[], None]:
        def do() -> None:
            if breaks:
                raise BenchError("It broke.")
            done.append(about)
        return do

    for step in run.steps():
        breaks = step.about == "a" and step.words.endswith("drains")
        run.carry_out(replace(step, do=measuring(step.about, breaks=breaks)))
    assert run.broken == {"a": "It broke."}
    assert "a" not in done
    assert done.count("b") == 5


def test_a_peer_that_is_not_installed_is_told_with_the_reason() -> None:
    def lacks() -> str:
        raise NotInstalled("b is not installed here")

    assert installed([peer("a"), peer("b", lacks)]) == ({"a": "1"},
                                                        {"b": "b is not installed here"})


def test_quick_asks_for_less_and_for_this_engine_alone() -> None:
    parser = command.argparse.ArgumentParser()
    command.add_arguments(parser)
    full, quick = parser.parse_args([]), parser.parse_args(["--quick"])
    assert [each.name for each in command._chosen(full)] == list(PEERS)
    assert [each.name for each in command._chosen(quick)] == ["dtq"]
    assert list(command.plan_of(full, []).depths) == [1_000, 10_000, 100_000, 1_000_000]
    assert command.plan_of(full, []).rounds == 5
    assert list(command.plan_of(quick, []).depths) == [1_000, 10_000]
    assert command.plan_of(quick, []).recovery_limit_s == 0


def test_the_json_of_a_file_is_the_report(tmp_path: Path) -> None:
    parser = command.argparse.ArgumentParser()
    command.add_arguments(parser)
    asked = parser.parse_args(["--json", str(tmp_path / "x.json"), "--markdown"])
    command._write(FULL, tmp_path, asked)
    assert json.loads((tmp_path / "x.json").read_text()) == \
        json.loads((tmp_path / "bench.json").read_text())
