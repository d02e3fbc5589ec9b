"""The bench: everything that is asked is recorded with its outcome, and workers are processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from dtq_conformance import bench as bench_module
from dtq_conformance.bench import Bench, TargetFault
from dtq_conformance.history import Process
from dtq_conformance.lab import Lab
from dtq_conformance.operation import Operation, Refused, answer_of

from tests.conformance.miniature import TIMING, Miniature, bench_of, lab_in, view


@pytest.fixture(scope="module")
def module_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture
def lab(module_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The lab of this module, with no witness line and names for workers as if it were new."""
    module_lab.witness.write_bytes(b"")
    monkeypatch.setattr(module_lab, "_processes", dict(list(module_lab._processes.items())[:2]))
    return module_lab


@pytest.fixture
def target() -> Miniature:
    return Miniature()


@pytest.fixture
def bench(lab: Lab, target: Miniature) -> Iterator[Bench]:
    with bench_of(target, lab) as bench:
        yield bench


def told(bench: Bench) -> list[tuple[str, str | None, str, dict[str, Any]]]:
    """What was recorded of what was asked."""
    return [(record.name, record.task_id, record.outcome, record.answer)
            for record in bench.records if isinstance(record, Operation)]


# Asking -----------------------------------------------------------------------------------------

def test_a_submission_is_recorded_with_its_request_and_its_times(bench: Bench) -> None:
    task_id = bench.submit({"sleep": 5}, label="first", priority=8)
    (record,) = bench.records
    assert isinstance(record, Operation)
    assert (record.name, record.task_id, record.outcome) == ("submit", task_id, "ok")
    assert record.request["payload"] == {"steps": [{"sleep": 5}], "label": "first"}
    assert (record.request["priority"], record.request["max_attempts"]) == (8, 5)
    assert record.asked_ns <= record.answered_ns


@pytest.mark.parametrize(("trouble", "outcome", "answer"), [
    (Refused("QUEUE_FULL", "no"), "refused", {"code": "QUEUE_FULL", "message": "no"}),
    (ConnectionError("gone"), "unknown", {"error": "ConnectionError: gone"})], ids=repr)
def test_what_is_not_answered_well_is_refused_or_unknown(
        bench: Bench, target: Miniature, trouble: Exception, outcome: str,
        answer: dict[str, Any]) -> None:
    target.trouble = trouble
    task_id = bench.submit()
    bench.look(task_id)
    assert told(bench) == [("submit", task_id, outcome, answer),
                           ("look", task_id, outcome, answer)]


def test_every_task_is_remembered_whatever_became_of_its_submission(
        bench: Bench, target: Miniature) -> None:
    first = bench.submit()
    target.trouble = ConnectionError("gone")
    second = bench.submit()
    bench.submit(task_id=first, priority=9)
    assert list(bench.submissions) == [first, second]
    assert bench.submissions[first].priority == 5


def test_a_submission_can_go_through_another_client(bench: Bench, target: Miniature) -> None:
    other = Miniature()
    task_id = bench.submit(through=other)
    assert (list(other.tasks), list(target.tasks)) == ([task_id], [])


def test_settings_of_the_run_reach_every_client(lab: Lab, target: Miniature) -> None:
    bench = Bench(lab, target, TIMING, 1, {"DTQ_X": "1", "DTQ_Y": "2"})
    assert target.site is not None
    assert target.site.settings == {"DTQ_X": "1", "DTQ_Y": "2"}
    bench.open_target(lab.broker.url, DTQ_Y="3")
    assert target.site.settings == {"DTQ_X": "1", "DTQ_Y": "3"}
    bench.close()


def test_ids_are_drawn_from_the_seed(lab: Lab, target: Miniature) -> None:
    def ids(seed: int) -> list[str]:
        with bench_of(target, lab, seed=seed) as bench:
            return bench.submit_many(3)

    assert ids(1) == ids(1) != ids(2)
    assert all(len(task_id) == 32 and int(task_id, 16) >= 0 for task_id in ids(1))


def test_while_watching_only_what_has_changed_is_recorded(
        bench: Bench, target: Miniature) -> None:
    task_id = bench.submit()
    del bench.records[:]
    for status in ("queued", "queued", "running", "running", "queued"):
        target.tasks[task_id] = view(task_id, status)
        bench.look(task_id, always=False)
    assert [answer["status"] for _, _, _, answer in told(bench)] == ["queued", "running", "queued"]
    bench.look(task_id)
    assert len(bench.records) == 4


def test_a_task_that_is_not_known_has_an_empty_answer(bench: Bench) -> None:
    assert bench.look("absent") is None
    assert told(bench) == [("look", "absent", "ok", {})]


def test_an_answer_that_is_none_ends_the_trial_and_names_all_its_faults(
        bench: Bench, target: Miniature) -> None:
    target.tasks["t"] = view("u", "sleeping", attempt=0)
    with pytest.raises(TargetFault, match=r"look at t: .*answered for u; .*is 0"):
        bench.look("t")


def test_a_target_that_lists_no_dead_letters_is_not_asked(bench: Bench) -> None:
    bench.ask_dead_letters()
    assert bench.records == []


def test_an_answer_tells_how_a_call_ended() -> None:
    assert answer_of(None) == {}
    assert answer_of(Refused("A", "b")) == {"code": "A", "message": "b"}
    assert answer_of(TimeoutError("late")) == {"error": "TimeoutError: late"}


# Workers ----------------------------------------------------------------------------------------

def test_a_worker_is_a_process_of_the_lab_and_found_by_its_pid(bench: Bench) -> None:
    worker = bench.start_worker(3)
    line = bench.await_witness("start", label="held")
    assert (line.pid, line.worker_id) == (worker.pid, "worker-1")
    assert bench.worker_of(line.pid) is worker
    assert (worker.name, worker.concurrency) == ("worker-1", 3)
    assert bench.living() == [worker]
    worker.process.kill()
    worker.process.wait(10)
    assert bench.living() == []
    with pytest.raises(KeyError):
        bench.worker_of(1)


def test_a_namesake_has_the_id_of_another_worker_and_a_name_of_its_own(bench: Bench) -> None:
    first = bench.start_worker()
    bench.await_witness("start", label="held")
    second = bench.start_worker(worker_id=first.worker_id)
    line = bench.await_witness("start", label="held", count=2)
    assert (line.pid, line.worker_id) == (second.pid, "worker-1")
    assert (second.name, second.worker_id) == ("worker-2", "worker-1")
    assert bench.worker_of(line.pid) is second
    assert bench.worker_of(first.pid) is first


def ends_of(bench: Bench, lab: Lab) -> list[tuple[str, int | None, int | None, str]]:
    """Name, exit code, signal and what it was asked, of each worker that has ended."""
    return [(record.name, record.exit_code, record.signal, record.asked)
            for record in lab.process_records()
            if isinstance(record, Process) and record.event == "exit"
            and record.name in [worker.name for worker in bench.workers]]


def test_workers_are_asked_to_stop_those_that_stand_still_too(bench: Bench, lab: Lab) -> None:
    first, _ = bench.start_workers(2)
    bench.await_witness("start", count=2)
    first.process.stop()
    bench.stop_workers()
    assert bench.living() == []
    assert sorted(ends_of(bench, lab)) == [("worker-1", 0, None, "terminate"),
                                           ("worker-2", 0, None, "terminate")]


def test_a_worker_that_does_not_stop_is_killed_and_its_record_says_that_it_was_asked(
        bench: Bench, lab: Lab, target: Miniature, monkeypatch: pytest.MonkeyPatch) -> None:
    target.stubborn = True
    bench.start_worker()
    bench.await_witness("start")
    monkeypatch.setattr(bench_module, "READY_LIMIT_S", 0.2)
    bench.stop_workers()
    assert ends_of(bench, lab) == [("worker-1", None, signal.SIGKILL, "terminate")]


# Watching ---------------------------------------------------------------------------------------

def test_watching_ends_when_all_are_terminal(bench: Bench, target: Miniature) -> None:
    ids = bench.submit_many(3)
    for task_id, status in zip(ids, ("succeeded", "dead_lettered", "failed"), strict=True):
        kept = view(task_id, status)
        target.tasks[task_id] = kept if status == "succeeded" else _with_error(kept)
    bench.start_worker()
    assert bench.await_all_terminal(limit_s=60)
    del bench.records[:]
    assert bench.await_all_terminal(limit_s=60)
    assert bench.records == []


def _with_error(seen: Any) -> Any:
    return type(seen)(**{name: getattr(seen, name) for name in seen.__struct_fields__}
                      | {"error_class": "PermanentError"})


def test_watching_gives_up_when_the_recovery_time_is_over(bench: Bench) -> None:
    bench.start_worker()
    bench.submit()
    assert not bench.await_all_terminal()


def test_watching_can_be_about_some_tasks_only(bench: Bench, target: Miniature) -> None:
    first, _ = bench.submit_many(2)
    target.tasks[first] = view(first, "succeeded")
    bench.start_worker()
    assert bench.await_all_terminal([first], limit_s=60)


def test_a_last_worker_that_is_lost_is_replaced_by_one_of_its_size(bench: Bench) -> None:
    worker = bench.start_worker(6)
    bench.await_witness("start")
    worker.process.kill()
    worker.process.wait(10)
    bench.submit()
    bench.await_all_terminal()
    assert [(each.name, each.concurrency) for each in bench.living()] == [("worker-2", 6)]
