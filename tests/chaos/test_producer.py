"""A producer is a real process: what it asked and was told is known, however it ended."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from dtq_chaos import producer
from dtq_conformance.bench import Bench
from dtq_conformance.lab import Lab
from dtq_conformance.operation import Operation
from dtq_conformance.target import Submission, load_target
from dtq_conformance.waiting import wait_for

from tests.conformance.miniature import bench_of, lab_in

pytestmark = pytest.mark.slow


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture
def bench(lab: Lab) -> Iterator[Bench]:
    with bench_of(load_target("reference"), lab) as bench:
        yield bench


@pytest.fixture
def deaf() -> Iterator[str]:
    """The URL of a server that lets clients in and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


def work(count: int, **fields: int) -> list[Submission]:
    return [Submission(task_id=f"{number:032x}", payload={"steps": [], "label": "made"}, **fields)
            for number in range(count)]


def submits(bench: Bench) -> list[tuple[str | None, str]]:
    return [(record.task_id, record.outcome) for record in bench.records
            if isinstance(record, Operation) and record.name == "submit"]


def test_what_was_answered_is_there_and_is_looked_at_like_any_other_task(bench: Bench) -> None:
    asked = work(3)
    producer.start(bench, "reference", asked, every_ms=1, broker_url=bench.lab.broker.url)
    producer.process_of(bench).wait(30)
    producer.adopt(bench)
    assert submits(bench) == [(each.task_id, "ok") for each in asked]
    assert list(bench.submissions.values()) == asked
    assert all(bench.look(each.task_id) for each in asked)
    assert producer.in_flight(bench) is None


def test_what_the_target_refused_is_refused(bench: Bench) -> None:
    producer.start(bench, "reference", work(1, priority=77), every_ms=1,
                   broker_url=bench.lab.broker.url)
    producer.process_of(bench).wait(30)
    producer.adopt(bench)
    assert [outcome for _, outcome in submits(bench)] == ["refused"]


def test_what_was_in_flight_when_it_was_killed_is_unknown_and_what_came_after_was_not_asked(
        bench: Bench, deaf: str) -> None:
    asked = work(3)
    producer.start(bench, "reference", asked, every_ms=1, broker_url=deaf)
    flying = wait_for(lambda: producer.in_flight(bench), reason="a submission", limit_s=30)
    producer.process_of(bench).kill()
    producer.process_of(bench).wait(10)
    producer.adopt(bench)
    assert flying == asked[0].task_id
    assert submits(bench) == [(flying, "unknown")]
    assert producer.answered(bench) == []


def test_a_line_that_its_writer_was_killed_over_does_not_count(bench: Bench) -> None:
    producer.start(bench, "reference", work(1), every_ms=1, broker_url=bench.lab.broker.url)
    producer.process_of(bench).wait(30)
    with (bench.lab.folder / f"{producer.NAME}.jsonl").open("ab") as told:
        told.write(b'{"at_ns":1,"task_id":"f')
    assert producer.answered(bench) == [work(1)[0].task_id]
