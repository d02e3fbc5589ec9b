"""`dtq-chaos storm`: real storms on the real reference, a smaller one replayed, and none without
Toxiproxy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dtq_chaos import run_storms, toxiproxy
from dtq_chaos.__main__ import main
from dtq_chaos.schedule import load
from dtq_conformance.exits import CONFORMS, INPUT, UNKNOWN
from dtq_conformance.history import Fault, read
from dtq_conformance.run import seeds
from dtq_conformance.scheduler import Ended, Job
from dtq_conformance.snapshot import taken

from tests.conformance.scheduled import run, runs

needs_toxiproxy = pytest.mark.usefixtures("toxiproxy_is_there")


@pytest.fixture
def toxiproxy_is_there(need: Callable[[object, str], None]) -> None:
    try:
        toxiproxy.find()
    except toxiproxy.ToxiproxyMissing as missing:
        need(None, str(missing))


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """What would have been run; nothing is."""
    asked: list[Job] = []

    def pretend(found: list[Job], _: object) -> list[Ended]:
        asked.extend(found)
        return [Ended(job.name, UNKNOWN, problem="pretended") for job in found]

    monkeypatch.setattr(run_storms, "run_jobs", pretend)
    return asked


def option(job: Job, name: str) -> str:
    return job.argv[list(job.argv).index(name) + 1]


@needs_toxiproxy
def test_a_single_storm_has_the_seed_that_was_asked_for(jobs: list[Job]) -> None:
    main(["storm", "--seconds", "7", "--seed", "5"])
    (job,) = jobs
    assert (job.name, option(job, "--seed"), option(job, "--seconds")) == ("storm 5", "5", "7")
    assert job.limit_s == 127


@needs_toxiproxy
def test_each_of_several_storms_has_a_seed_of_its_own(jobs: list[Job]) -> None:
    main(["storm", "--storms", "3", "--seed", "5"])
    assert [option(job, "--seed") for job in jobs] == [str(seed) for seed in seeds(5, 3)]
    assert len({job.name for job in jobs}) == 3


def test_without_toxiproxy_no_storm_is_run_and_that_is_said(
        jobs: list[Job], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path) -> None:
    monkeypatch.delenv("DTQ_TOXIPROXY_URL", raising=False)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["storm", "--json"]) == UNKNOWN
    told = capsys.readouterr()
    assert list(json.loads(told.out)["not_run"]) == ["storm"]
    assert told.err.startswith("not run: storm: ")
    assert not jobs


@pytest.mark.parametrize("argument", [["--seconds", "0"], ["--storms", "x"], ["--target", "none"]])
def test_what_makes_no_sense_is_the_users_fault(
        argument: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storm", *argument]) == INPUT
    assert capsys.readouterr().out == ""


# Real storms ------------------------------------------------------------------------------------

def only(done: Any) -> dict[str, Any]:
    (found,) = runs(done).values()
    return dict(found)


@pytest.mark.slow
@needs_toxiproxy
def test_a_storm_is_weathered_and_a_smaller_one_can_be_replayed(tmp_path: Path) -> None:
    done = run("dtq_chaos", "storm", "--seconds", "6", "--seed", "11", "--json", "--out",
               str(tmp_path))
    first = only(done)
    assert (done.returncode, first["status"]) == (CONFORMS, "holds"), done.stdout + done.stderr
    folder = Path(first["folder"])
    schedule, history = load(folder / "schedule.json"), read(folder / "history.jsonl")
    assert {record.number for record in history.of(Fault)} == set(range(len(schedule.entries)))
    assert history.submissions.keys() == {ask.task_id for ask in schedule.asks
                                          if ask.ask == "submit"}
    assert len(taken(history.records)) > 10
    smaller = msgspec.structs.replace(schedule, entries=schedule.entries[:2],
                                      asks=schedule.asks[:60])
    (folder / "schedule.json").write_bytes(msgspec.json.encode(smaller))
    again = only(run("dtq_chaos", "replay", str(folder), "--json", "--out", str(tmp_path)))
    assert load(Path(again["folder"]) / "schedule.json") == smaller
    assert {record.number for record in read(Path(again["folder"]) / "history.jsonl").of(Fault)} \
        == {0, 1}
    assert again["verdict"]["marks_missing"] == []


@pytest.mark.slow
@needs_toxiproxy
def test_without_its_faults_a_storm_says_nothing(tmp_path: Path) -> None:
    done = run("dtq_chaos", "storm", "--seconds", "2", "--seed", "11", "--without-faults",
               "--json", "--out", str(tmp_path))
    assert (done.returncode, only(done)["status"]) == (UNKNOWN, "unknown")
    assert only(done)["verdict"]["marks_missing"] == ["every_fault_bit"]
    assert not read(Path(only(done)["folder"]) / "history.jsonl").of(Fault)
