"""The player of storms: everything in its time, and a worker in each place whatever befalls it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Ask, Entry, Schedule, When
from dtq_chaos.storm_player import PLACES, play
from dtq_conformance.bench import Bench
from dtq_conformance.history import Fault
from dtq_conformance.operation import Operation

from tests.conformance.miniature import Miniature, bench_of, lab_in, view


class Administered(Miniature):
    """A miniature that can be paused and cancels tasks; `asked` says what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def pause(self) -> None:
        self.asked.append("pause")

    def resume(self) -> None:
        self.asked.append("resume")

    def requeue(self, task_id: str) -> None:
        self.asked.append(f"requeue {task_id[0]}")

    def cancel(self, task_id: str) -> str:
        self.asked.append(f"cancel {task_id[0]}")
        return "cancelled"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Links lead straight to the broker."""
    monkeypatch.setattr(Stage, "url_of", lambda stage, _: stage.bench.lab.broker.url)
    with lab_in(tmp_path / "logs") as lab, bench_of(Administered(), lab) as bench:
        yield bench


def entry(fault: str, at_ms: int, lasts_ms: int | None = None, **parameters: Any) -> Entry:
    until = None if lasts_ms is None else When(event="elapsed", count=at_ms + lasts_ms)
    return Entry(fault=fault, when=When(event="elapsed", count=at_ms), until=until,
                 parameters=parameters)


def blow(bench: Bench, *parts: Entry | Ask, with_faults: bool = True) -> list[str]:
    """Play a storm of these parts; returns what the faults did, in order."""
    told: list[str] = []

    def note(stage: Stage, entry: Entry) -> Bite:
        told.append(f"note {entry.parameters.get('worker', 'nobody')}")
        return Bite()

    def begin(stage: Stage, entry: Entry) -> Bite:
        told.append(f"begin {entry.parameters['link']}")
        return Bite(detail=dict(entry.parameters))

    def kill(stage: Stage, entry: Entry) -> Bite:
        victim = stage.worker(entry.parameters["worker"])
        victim.process.kill()
        victim.process.wait(10)
        told.append(f"kill {victim.name}")
        return Bite([victim.pid])

    kinds = {"note": FaultKind("note", "delayed", note),
             "last": FaultKind("last", "cut", begin,
                               lambda _, bite: told.append(f"end {bite.detail['link']}")),
             "kill": FaultKind("kill", "killed", kill),
             "terminate_worker": FaultKind("terminate_worker", "terminated", note)}
    stage = Stage(bench, kinds, target="miniature", with_faults=with_faults)
    play(stage, Schedule(scenario="storm", target="t", broker="b", seed=1,
                         entries=[part for part in parts if isinstance(part, Entry)],
                         asks=[part for part in parts if isinstance(part, Ask)]))
    return told


def submit(at_ms: int, task_id: str) -> Ask:
    return Ask(at_ms=at_ms, ask="submit", task_id=task_id,
               fields={"steps": [{"sleep": 1}], "label": "x", "priority": 3})


def test_each_place_has_a_worker_and_a_fault_strikes_the_one_of_its_place(bench: Bench) -> None:
    told = blow(bench, entry("note", 1, place=2), entry("note", 2, place=1), entry("note", 3))
    assert told == ["note worker-2", "note worker-1", "note nobody"]
    assert [worker.name for worker in bench.workers] == [f"worker-{n + 1}" for n in range(PLACES)]


def test_faults_that_last_overlap_and_end_in_their_time(bench: Bench) -> None:
    told = blow(bench, entry("last", 0, 300, place=1), entry("last", 50, 50, place=2))
    assert told == ["begin worker-1", "begin worker-2", "end worker-2", "end worker-1"]
    phases = [(record.number, record.phase) for record in bench.records
              if isinstance(record, Fault)]
    assert phases == [(0, "begin"), (0, "bit"), (1, "begin"), (1, "bit"), (1, "end"), (0, "end")]
    assert all(record.pids == [] for record in bench.records if isinstance(record, Fault))


def test_a_place_that_is_befallen_is_left_alone_until_it_is_mended(bench: Bench) -> None:
    told = blow(bench, entry("last", 0, 200, place=1), entry("note", 50, place=1),
                entry("note", 60, place=2))
    assert told == ["begin worker-1", "note worker-2", "end worker-1", "note worker-1"]


def test_whoever_ends_is_followed_by_another_one(bench: Bench) -> None:
    told = blow(bench, entry("kill", 0, place=3), entry("kill", 1, place=3),
                entry("note", 2, place=3))
    assert told == ["kill worker-3", "kill worker-4", "note worker-5"]


def test_who_is_asked_to_stop_is_replaced_at_once(bench: Bench) -> None:
    told = blow(bench, entry("terminate_worker", 0, place=1), entry("note", 1, place=1))
    assert told == ["note worker-1", "note worker-4"]


def test_what_is_to_be_asked_is_asked_in_its_time(bench: Bench) -> None:
    began_ns = time.monotonic_ns()
    blow(bench, submit(100, "a" * 32), submit(0, "b" * 32),
         Ask(at_ms=150, ask="look", task_id="b" * 32))
    asked = {(record.name, record.task_id): record for record in bench.records
             if isinstance(record, Operation)}
    assert asked.keys() == {("submit", "a" * 32), ("submit", "b" * 32), ("look", "b" * 32)}
    assert all(record.outcome == "ok" for record in asked.values())
    assert asked["submit", "a" * 32].asked_ns - began_ns > 100_000_000
    assert asked["submit", "a" * 32].request["priority"] == 3


def asked(bench: Bench) -> list[str]:
    assert isinstance(bench.target, Administered)
    return bench.target.asked


def test_a_pause_is_over_before_the_storm_is(bench: Bench) -> None:
    blow(bench, Ask(at_ms=0, ask="pause", fields={"lasts_ms": 50}))
    assert asked(bench) == ["pause", "resume"]


def test_what_was_not_submitted_is_not_asked_about(bench: Bench) -> None:
    blow(bench, submit(0, "a" * 32), Ask(at_ms=200, ask="cancel", task_id="a" * 32),
         Ask(at_ms=200, ask="cancel", task_id="b" * 32))
    assert asked(bench) == ["cancel a"]


def test_only_what_is_seen_to_be_over_is_requeued(bench: Bench) -> None:
    over, runs = "a" * 32, "b" * 32
    assert isinstance(bench.target, Administered)
    bench.submit(task_id=over)
    bench.submit(task_id=runs)
    bench.target.tasks[over] = view(over, "dead_lettered", error_class="X")
    blow(bench, *(Ask(at_ms=0, ask="requeue", task_id=task_id) for task_id in (over, runs)))
    assert asked(bench) == ["requeue a"]


def test_without_faults_only_the_work_is_there(bench: Bench) -> None:
    assert blow(bench, submit(0, "a" * 32), entry("note", 0), with_faults=False) == []
    assert list(bench.submissions) == ["a" * 32]
    assert not [record for record in bench.records if isinstance(record, Fault)]


def test_an_error_of_a_fault_ends_the_storm(bench: Bench) -> None:
    with pytest.raises(KeyError):
        blow(bench, submit(60_000, "a" * 32), entry("unheard_of", 0))
    assert not bench.submissions


def test_a_replay_of_any_part_of_a_schedule_is_a_storm(bench: Bench) -> None:
    whole = [entry("kill", 0, place=1), entry("last", 1, 5, place=1), submit(0, "a" * 32)]
    for left_out in range(len(whole)):
        blow(bench, *whole[:left_out], *whole[left_out + 1:])
