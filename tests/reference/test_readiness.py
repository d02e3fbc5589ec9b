"""/ready tells the truth: what Redis would refuse, what it lacks, and within a bounded time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_reference import readiness
from dtq_reference.keys import GROUP
from dtq_reference.transport import AsyncTransport

from tests.reference.engine import Engine
from tests.reference.http import asked, is_refusal


def reasons(engine: Engine, *, url: str = "", limit_s: float = 10) -> list[str]:
    async def main() -> list[str]:
        transport = AsyncTransport(url or engine.settings.redis_url)
        try:
            return await readiness.check(transport.redis, engine.keys, limit_s=limit_s)
        finally:
            await transport.close()

    return asyncio.run(main())


@pytest.fixture(scope="module")
def own_lab(request: pytest.FixtureRequest,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server that may be made to refuse work: not one that is only visited."""
    broker: str = request.config.getoption("--engine-broker")
    with Lab(tmp_path_factory.mktemp("own"),
             broker="embedded" if "://" in broker else broker) as lab:
        yield lab


@pytest.fixture
def own(own_lab: Lab) -> Iterator[Engine]:
    engine = Engine(own_lab.broker.url, "own:")
    yield engine
    engine.redis.flushall()
    engine.close()


def test_an_empty_installation_is_ready_and_stays_empty(engine: Engine) -> None:
    assert reasons(engine) == []
    assert engine.dump() == {}


def test_asking_changes_nothing(engine: Engine) -> None:
    engine.submit()
    engine.submit(delay_ms=60_000)
    engine.worker()
    before = engine.dump()
    assert reasons(engine) == []
    assert engine.dump() == before


def test_a_queue_that_no_worker_has_come_to_yet_is_no_trouble(engine: Engine) -> None:
    engine.submit()
    assert reasons(engine) == []
    engine.worker()
    assert reasons(engine) == []


def test_a_lost_group_is_named(engine: Engine) -> None:
    engine.worker()
    engine.submit()
    engine.redis.xgroup_destroy(engine.keys.stream("default", 9), GROUP)
    assert reasons(engine) == ["Queue default lacks its consumer group on 1 of 10 streams."]
    for stream in engine.keys.streams("default"):
        engine.redis.xgroup_destroy(stream, GROUP)
    assert reasons(engine) == ["Queue default lacks its consumer group on 10 of 10 streams."]
    engine.worker()
    assert reasons(engine) == []


def out_of_memory(engine: Engine) -> None:
    engine.redis.config_set("maxmemory", "1")


def enough_memory(engine: Engine) -> None:
    engine.redis.config_set("maxmemory", "0")


def a_replica(engine: Engine) -> None:
    engine.redis.replicaof("127.0.0.1", "1")


def a_master(engine: Engine) -> None:
    engine.redis.replicaof("no", "one")


def without_replicas(engine: Engine) -> None:
    engine.redis.config_set("min-replicas-to-write", "1")


def with_enough_replicas(engine: Engine) -> None:
    engine.redis.config_set("min-replicas-to-write", "0")


@pytest.mark.parametrize(("break_it", "mend_it", "word"), [
    (out_of_memory, enough_memory, "memory"), (a_replica, a_master, "replica"),
    (without_replicas, with_enough_replicas, "replicas")])
def test_a_server_that_takes_no_writes_is_not_ready(
        own: Engine, break_it: Callable[[Engine], None], mend_it: Callable[[Engine], None],
        word: str) -> None:
    break_it(own)
    try:
        [reason] = reasons(own)
        assert reason.startswith("Redis refuses work: ")
        assert word in reason
    finally:
        mend_it(own)
    assert reasons(own) == []


def test_a_server_that_cannot_save_is_not_ready(own: Engine, need: Callable[..., None]) -> None:
    known = own.redis.config_get("dir", "dbfilename")
    folder, name = (Path(value.decode() if isinstance(value, bytes) else value)
                    for value in (known["dir"], known["dbfilename"]))
    need(folder.is_dir(), "the folder that the server saves into is out of reach")
    in_the_way = folder / name
    in_the_way.unlink(missing_ok=True)
    in_the_way.mkdir()
    own.redis.config_set("save", "3600 1")
    try:
        own.redis.bgsave()
        wait_for(lambda: own.redis.info("persistence")["rdb_last_bgsave_status"] == "err",
                 reason="saving to fail", limit_s=20)
        [reason] = reasons(own)
        assert reason.startswith("Redis refuses work: ")
    finally:
        in_the_way.rmdir()
        own.redis.config_set("save", "")
    assert reasons(own) == []


@pytest.mark.slow
def test_the_api_tells_the_truth_while_its_server_is_away_and_after(
        own: Engine, own_lab: Lab) -> None:
    with asked(own) as client:
        client.submit()
        assert client.get("//ready").status_code == 200
        own_lab.broker.kill()
        try:
            assert is_refusal(client.get("//ready"), 503, "NOT_READY")
            assert is_refusal(client.get("/queues"), 503, "BROKER_UNAVAILABLE")
            assert client.get("//health").status_code == 200
        finally:
            own_lab.broker.restart()
        wait_for(lambda: client.get("//ready").status_code == 200,
                 reason="the API to be ready again", limit_s=20)
        client.submit()
        process = own_lab.broker.process
        assert process is not None
        process.stop()
        try:
            answer = client.get("//ready")
            assert is_refusal(answer, 503, "NOT_READY")
            assert "did not answer" in answer.json()["message"]
        finally:
            process.resume()
        wait_for(lambda: client.get("//ready").status_code == 200,
                 reason="the API to be ready again", limit_s=20)


def test_a_server_that_is_away_is_not_ready(engine: Engine) -> None:
    [reason] = reasons(engine, url="redis://127.0.0.1:1/0")
    assert reason.startswith("Redis cannot be reached: ")


def test_a_server_that_says_nothing_is_not_waited_for(engine: Engine) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        assert reasons(engine, url=url, limit_s=0.2) == ["Redis did not answer within 0.2 s."]
