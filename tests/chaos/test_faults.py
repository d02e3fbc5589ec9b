"""The faults that befall a worker's process, on real processes: what they do, and what they saw."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import redis
from dtq_chaos import fault as fault_module
from dtq_chaos import toxiproxy
from dtq_chaos.fault import Stage
from dtq_chaos.faults import FAULTS
from dtq_chaos.schedule import Entry, When
from dtq_conformance.bench import Bench, Worker
from dtq_conformance.history import Fault, Process
from dtq_conformance.keyspace import GROUP
from dtq_conformance.lab import Lab
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.conformance.miniature import Miniature, bench_of, lab_in


@pytest.fixture(scope="module")
def module_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture
def lab(module_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The module's lab, without witness lines, and with no process but broker and pacemaker."""
    module_lab.witness.write_bytes(b"")
    with module_lab.broker.connect() as client:
        client.flushdb()
    monkeypatch.setattr(module_lab, "_processes", dict(list(module_lab._processes.items())[:2]))
    return module_lab


@pytest.fixture
def stage(lab: Lab) -> Iterator[Stage]:
    with bench_of(Miniature(), lab) as bench:
        yield Stage(bench, FAULTS, target="miniature", with_faults=True)


def victim(stage: Stage) -> Worker:
    """A worker that has started the task "held"."""
    worker = stage.bench.start_worker(2)
    stage.bench.await_witness("start", label="held")
    return worker


def strike(stage: Stage, fault: str, **parameters: str) -> Fault:
    """Let one fault strike; returns the record that it bit."""
    stage.play([Entry(fault=fault, when=When(event="at_once"), parameters=parameters)])
    return next(record for record in stage.bench.records
                if isinstance(record, Fault) and record.phase == "bit")


def exits(bench: Bench) -> list[tuple[int | None, int | None, str]]:
    return [(record.exit_code, record.signal, record.asked)
            for worker in bench.workers for record in worker.process.records()
            if isinstance(record, Process) and record.event == "exit"]


def test_a_killed_worker_is_gone_when_the_fault_has_bitten(stage: Stage) -> None:
    worker = victim(stage)
    bit = strike(stage, "kill_worker", holder_of="held")
    assert exits(stage.bench) == [(None, 9, "kill")]
    assert (bit.effect, bit.pids, bit.detail["open"]) == ("killed", [worker.pid], ["held"])


def test_a_worker_that_is_asked_to_stop_stops_and_what_it_held_was_seen_before(
        stage: Stage) -> None:
    worker = victim(stage)
    bit = strike(stage, "terminate_worker", worker="worker-1")
    worker.process.wait(10)
    assert exits(stage.bench) == [(0, None, "terminate")]
    assert (bit.effect, bit.detail["open"]) == ("terminated", ["held"])
    assert bit.detail["unstarted"] == []
    assert bit.detail["stood_still_ms"] >= 0


def test_a_stopped_worker_stands_still_until_it_is_mended(stage: Stage) -> None:
    worker = victim(stage)
    strike(stage, "stop_worker", worker="worker-1")
    assert psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED
    stage.heal()
    assert worker.process.alive
    worker.process.terminate()
    worker.process.wait(10)
    assert exits(stage.bench) == [(0, None, "terminate")]


def test_a_task_with_the_label_is_deleted_from_the_server(stage: Stage) -> None:
    bench = stage.bench
    kept, deleted = bench.submit(label="kept"), bench.submit(label="deleted")
    client = bench.keyspace.client
    for task_id in (kept, deleted):
        client.hset(f"{bench.lab.broker.prefix}task:{task_id}", "status", "queued")
        client.xadd(f"{bench.lab.broker.prefix}stream:default:p5", {"task_id": task_id})
    bit = strike(stage, "delete_task", label="deleted")
    assert (bit.effect, bit.pids, bit.detail) == ("deleted", [], {"task_id": deleted})
    assert [bench.keyspace.entries_of(each) for each in (kept, deleted)] == [1, 0]


def test_where_no_task_can_be_deleted_the_record_says_so(stage: Stage) -> None:
    stage.bench.submit(label="kept")
    assert strike(stage, "delete_task", label="deleted").detail == {"task_id": None}


def test_replies_over_a_link_are_lost_until_it_is_mended(
        stage: Stage, need: Callable[[object, str], None]) -> None:
    try:
        toxiproxy.find()
    except toxiproxy.ToxiproxyMissing as missing:
        need(None, str(missing))
    with redis.Redis.from_url(stage.url_of("client"), socket_timeout=0.05,
                              retry=Retry(NoBackoff(), 0)) as client:
        client.ping()  # it is connected
        bit = strike(stage, "lose_replies", link="client")
        assert (bit.effect, bit.pids, bit.detail["lost"]) == ("reply_lost", [], True)
        with pytest.raises(redis.TimeoutError):
            client.set("done", 1)
    assert stage.bench.keyspace.client.get("done") == b"1"
    stage.heal()
    with redis.Redis.from_url(stage.url_of("client")) as client:
        assert client.ping()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not come is not waited for: no worker here talks to the broker."""
    monkeypatch.setattr(fault_module, "EVENT_LIMIT_S", 0.05)


def taken(stage: Stage, task_id: str, consumer: str) -> None:
    """A task that the broker shows as pending under a consumer's name."""
    client, prefix = stage.bench.keyspace.client, stage.bench.lab.broker.prefix
    stream = f"{prefix}stream:default:p5"
    if not client.exists(stream):
        client.xgroup_create(stream, GROUP, id="0", mkstream=True)
    client.xadd(stream, {"task_id": task_id})
    client.xreadgroup(GROUP, consumer, {stream: ">"}, count=1)


def test_groups_are_lost_with_what_was_pending_in_them(
        stage: Stage, impatient: None) -> None:
    worker = stage.bench.start_worker()
    taken(stage, "held", "worker-1.x")
    bit = strike(stage, "drop_group", worker="worker-1")
    assert (bit.effect, bit.pids) == ("group_dropped", [worker.pid])
    assert bit.detail == {"worker": "worker-1", "in_hand": ["held"], "groups": 1,
                          "held_again": []}
    assert stage.bench.keyspace.entries_of("held") == 1


def test_all_groups_are_forgotten_while_something_is_in_hand_and_more_waits(
        stage: Stage) -> None:
    taken(stage, "held", "worker-1.x")
    stage.bench.keyspace.forge_entry("waits", {})
    bit = strike(stage, "forget_groups")
    assert (bit.effect, bit.pids) == ("group_dropped", [])
    assert bit.detail == {"groups": 1, "left": 0, "in_hand": 1, "waiting": 1}
    assert [stage.bench.keyspace.entries_of(each) for each in ("held", "waits")] == [1, 1]


@pytest.fixture
def calling(stage: Stage) -> Iterator[None]:
    """A client that calls a script all the time, and loads it again when it is gone."""
    over = threading.Event()

    def call() -> None:
        with stage.bench.lab.broker.connect() as client:
            script = client.register_script("return 1")
            while not over.wait(0.005):
                script()

    thread = threading.Thread(target=call)
    thread.start()
    yield
    over.set()
    thread.join()


def test_scripts_are_forgotten_each_time_and_known_again(stage: Stage, calling: None) -> None:
    stage.play([Entry(fault="flush_scripts", when=When(event="at_once"), parameters={
        "after": [0, 0], "label": "load", "submissions": 2})])
    bit = next(record for record in stage.bench.records
               if isinstance(record, Fault) and record.phase == "bit")
    assert (bit.effect, bit.pids) == ("scripts_flushed", [])
    assert bit.detail["flushes"] == 2 * [{"before": 1, "after": 0, "again": 1, "unfinished": 0}]
    assert len(stage.bench.submissions) == 4


def test_scripts_are_left_alone_when_no_handler_ends(
        stage: Stage, impatient: None, calling: None) -> None:
    stage.play([Entry(fault="flush_scripts", when=When(event="at_once"), parameters={
        "after": [1, 1], "label": "load", "submissions": 2})])
    assert [record.detail for record in stage.bench.records
            if isinstance(record, Fault) and record.phase == "bit"] == [{"flushes": []}]


def test_a_forged_entry_that_nobody_reads_is_told_to_be_left(
        stage: Stage, impatient: None) -> None:
    bit = strike(stage, "forge_entry", task_id="forged")
    assert (bit.effect, bit.pids, bit.detail) == (
        "forged", [], {"task_id": "forged", "entries": 1})


def test_a_namesake_is_another_process_with_the_same_id(
        stage: Stage, impatient: None) -> None:
    old = victim(stage)
    key = f"{stage.bench.lab.broker.prefix}worker:worker-1"
    stage.bench.keyspace.client.hset(key, mapping={"incarnation": "x", "started_at": "1"})
    taken(stage, "held", "worker-1.x")
    taken(stage, "unseen", "worker-1.x")
    bit = strike(stage, "start_namesake", worker="worker-1", concurrency=3)
    assert (bit.effect, old.pid in bit.pids) == ("replaced", True)
    assert (bit.detail["open"], bit.detail["in_hand"]) == (["held"], ["held", "unseen"])
    assert bit.detail["before"] == bit.detail["now"] == ("worker-1.x", "1")
    new = stage.bench.workers[-1]
    assert (new.name, new.worker_id, new.concurrency) == ("worker-2", "worker-1", 3)


def test_a_restarted_broker_was_away_and_has_its_data(tmp_path: Path) -> None:
    with (Lab(tmp_path / "logs", persistence="always") as lab,
          bench_of(Miniature(), lab) as bench):
        stage = Stage(bench, FAULTS, target="miniature", with_faults=True)
        bench.start_worker()
        taken(stage, "held", "worker-1.x")
        stage.play([Entry(fault="restart_broker", when=When(event="at_once"),
                          parameters={"away": 50})])
        bit = next(record for record in bench.records
                   if isinstance(record, Fault) and record.phase == "bit")
        assert (bit.effect, bit.detail["in_hand"], bit.detail["entries"]) == (
            "broker_restarted", {"worker-1": ["held"]}, 1)
        assert bit.detail["away_ms"] >= 50
        assert bench.keyspace.in_hand("worker-1") == ["held"]


def test_a_power_failure_costs_the_file_bytes_of_its_last_second(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The miniature's submissions write nothing to the server; these do."""
    with (Lab(tmp_path / "logs", persistence="everysec") as lab,
          bench_of(Miniature(), lab) as bench, lab.broker.connect() as client):
        stage = Stage(bench, FAULTS, target="miniature", with_faults=True)
        client.rpush("dtq:written", "old")
        monkeypatch.setattr(bench, "submit", lambda *_, **__: client.rpush("dtq:written", "young"))
        stage.play([Entry(fault="cut_power", when=When(event="at_once"),
                          parameters={"share": 0.0, "submissions": 4, "away": 10})])
        bit = next(record for record in bench.records
                   if isinstance(record, Fault) and record.phase == "bit")
        assert bit.effect == "power_lost"
        assert bit.detail["kept"] == bit.detail["cut"] < bit.detail["end"]
        client.connection_pool.disconnect()
        assert client.lrange("dtq:written", 0, -1) == [b"old"]


@pytest.mark.parametrize(("fault", "effect", "word"), [
    ("exhaust_memory", "out_of_memory", "OOM"), ("refuse_writes", "broker_away", "NOREPLICAS")])
def test_a_server_that_refuses_writes_takes_them_again_when_it_is_mended(
        stage: Stage, fault: str, effect: str, word: str) -> None:
    keyspace = stage.bench.keyspace
    bit = strike(stage, fault)
    assert (bit.effect, bit.pids, bit.detail) == (effect, [], {"refused": [word]})
    assert keyspace.refusal() == word
    assert keyspace.client.ping()
    stage.heal()
    assert keyspace.client.set("dtq:written", 1)
    assert bit.detail == {"refused": [word, word]}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_after_its_module(name: str) -> None:
    assert FAULTS[name].name == name
    assert FAULTS[name].begin.__module__ == f"dtq_chaos.faults.{name}"
