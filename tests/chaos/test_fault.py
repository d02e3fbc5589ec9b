"""The stage plays a schedule on a bench: each fault waits for its event, and leaves records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dtq_chaos import fault as fault_module
from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry, When
from dtq_conformance.bench import Bench, Worker
from dtq_conformance.history import Fault
from dtq_conformance.lab import Lab
from dtq_conformance.operation import Operation

from tests.conformance.miniature import Miniature, bench_of, lab_in

AT_ONCE = When(event="at_once")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture(scope="module")
def worked(lab: Lab) -> Iterator[tuple[Bench, Worker]]:
    """A bench with one worker that has started one task, with the label "held"."""
    with bench_of(Miniature(), lab) as bench:
        worker = bench.start_worker(3)
        bench.await_witness("start", label="held")
        yield bench, worker


@pytest.fixture
def bench(worked: tuple[Bench, Worker]) -> Bench:
    bench, _ = worked
    del bench.records[:]
    return bench


class Faults:
    """Two kinds of fault that only tell what was done: one is over at once, one lasts."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.kinds = {"brief": FaultKind("brief", "deleted", self.begin),
                      "lasting": FaultKind("lasting", "cut", self.begin, self.end)}

    def begin(self, stage: Stage, entry: Entry) -> Bite:
        del stage
        self.done.append(f"begin {entry.fault}")
        return Bite([7], {"seen": entry.parameters})

    def end(self, stage: Stage, bite: Bite) -> None:
        del stage, bite
        self.done.append("end")


@pytest.fixture
def faults() -> Faults:
    return Faults()


def stage_of(bench: Bench, faults: Faults, *, with_faults: bool = True) -> Stage:
    return Stage(bench, faults.kinds, target="miniature", with_faults=with_faults)


def records(bench: Bench) -> list[tuple[str, int, str]]:
    return [(record.fault, record.number, record.phase) for record in bench.records
            if isinstance(record, Fault)]


def test_a_fault_that_is_over_at_once_began_bit_and_ended(bench: Bench, faults: Faults) -> None:
    stage_of(bench, faults).play([Entry(fault="brief", when=AT_ONCE, parameters={"a": 1})])
    assert records(bench) == [("brief", 0, phase) for phase in ("begin", "bit", "end")]
    for record in bench.records:
        assert isinstance(record, Fault)
        assert (record.effect, record.pids, record.detail) == ("deleted", [7], {"seen": {"a": 1}})
    times = [record.at_ns for record in bench.records if isinstance(record, Fault)]
    assert times == sorted(times)


def test_a_fault_that_lasts_is_mended_when_the_stage_heals_the_newest_first(
        bench: Bench, faults: Faults) -> None:
    stage = stage_of(bench, faults)
    stage.play([Entry(fault="lasting", when=AT_ONCE), Entry(fault="lasting", when=AT_ONCE)])
    assert faults.done == ["begin lasting"] * 2
    stage.heal()
    stage.heal()
    assert faults.done == ["begin lasting"] * 2 + ["end"] * 2
    assert [each for each in records(bench) if each[2] == "end"] == [("lasting", 1, "end"),
                                                                     ("lasting", 0, "end")]


def test_a_fault_with_an_end_is_mended_before_the_next_one_strikes(
        bench: Bench, faults: Faults) -> None:
    stage_of(bench, faults).play([Entry(fault="lasting", when=AT_ONCE, until=AT_ONCE),
                                  Entry(fault="brief", when=AT_ONCE)])
    assert faults.done == ["begin lasting", "end", "begin brief"]


def test_without_faults_nothing_strikes(bench: Bench, faults: Faults) -> None:
    stage = stage_of(bench, faults, with_faults=False)
    stage.play([Entry(fault="brief", when=AT_ONCE), Entry(fault="lasting", when=AT_ONCE)])
    stage.heal()
    assert (faults.done, records(bench)) == ([], [])


@pytest.mark.parametrize("event", [
    When(event="start", label="held", count=2), When(event="start", label="other"),
    When(event="end", label="held"), When(event="in_hand", worker="worker-1"),
    When(event="exit", worker="worker-1")], ids=str)
def test_an_event_that_does_not_come_leaves_its_fault_out_and_the_others_go_on(
        bench: Bench, faults: Faults, monkeypatch: pytest.MonkeyPatch, event: When) -> None:
    monkeypatch.setattr(fault_module, "EVENT_LIMIT_S", 0.05)
    stage_of(bench, faults).play([Entry(fault="lasting", when=event),
                                  Entry(fault="brief", when=AT_ONCE)])
    assert faults.done == ["begin brief"]
    assert {number for _, number, _ in records(bench)} == {1}


@pytest.mark.parametrize("event", [
    When(event="start"), When(event="start", label="held"),
    When(event="in_hand", worker="worker-1", count=0)], ids=str)
def test_an_event_that_has_come_lets_its_fault_strike(
        bench: Bench, faults: Faults, event: When) -> None:
    stage_of(bench, faults).play([Entry(fault="brief", when=event)])
    assert faults.done == ["begin brief"]


def test_a_victim_is_named_or_is_the_holder_of_the_newest_execution(
        bench: Bench, faults: Faults, worked: tuple[Bench, Worker]) -> None:
    stage, worker = stage_of(bench, faults), worked[1]
    for parameters in ({"worker": "worker-1"}, {"holder_of": "held"}):
        entry = Entry(fault="brief", when=AT_ONCE, parameters=parameters)
        assert stage.victim(entry) is worker


def test_hands_are_what_the_broker_shows_and_what_the_witness_shows(
        bench: Bench, faults: Faults, worked: tuple[Bench, Worker], lab: Lab,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.keyspace, "in_hand", lambda name: ["held", f"taken by {name}"])
    assert stage_of(bench, faults).hands(worked[1]) == {
        "worker": "worker-1", "concurrency": 3, "in_hand": ["held", "taken by worker-1"],
        "open": ["held"], "unstarted": ["taken by worker-1"]}


def test_waiting_quietly_says_whether_it_came(bench: Bench, faults: Faults,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_module, "EVENT_LIMIT_S", 0)
    stage = stage_of(bench, faults)
    assert stage.await_quietly(lambda: True, reason="something")
    assert not stage.await_quietly(lambda: False, reason="nothing")


def test_a_grown_server_is_older_than_a_lease_in_whole_seconds(
        bench: Bench, faults: Faults) -> None:
    stage_of(bench, faults).await_grown_server()
    with bench.lab.broker.connect() as client:
        uptime_s = client.info("server")["uptime_in_seconds"]
    assert (uptime_s - 1) * 1000 >= bench.timing.lease_ms


def test_submissions_go_on_by_a_client_that_gives_up_soon(bench: Bench, faults: Faults) -> None:
    stage = stage_of(bench, faults)
    for span_ms, count in ((0, 1), (1, 3)):  # one more after the span, if it is not over before
        stage.submit_for(span_ms, label="meanwhile")
        asked = [record for record in bench.records if isinstance(record, Operation)]
        assert {each.request["payload"]["label"] for each in asked} == {"meanwhile"}
        assert count - 1 <= len(asked) <= count
    target = bench.target
    assert isinstance(target, Miniature)
    assert target.site is not None
    assert target.site.settings == {"DTQ_TASK_RETENTION_S": "1"}
