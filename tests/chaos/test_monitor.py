"""Counting how often a script was sent about a task, on a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis
from dtq_chaos.monitor import Monitor
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for

from tests.conformance.miniature import lab_in

ONE, OTHER = "return 1", "return 2"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture
def client(lab: Lab) -> Iterator[redis.Redis]:
    with lab.broker.connect() as client:
        yield client


@pytest.fixture
def monitor(lab: Lab) -> Iterator[Monitor]:
    with lab.broker.connect() as watched, Monitor(watched) as monitor:
        yield monitor


def call(client: redis.Redis, script: str, argument: str) -> None:
    client.evalsha(client.script_load(script), 0, argument)


def sent(monitor: Monitor, client: redis.Redis, task_id: str, *, not_before_ns: int = 0) -> int:
    """What the monitor counts once it has seen all that was sent so far."""
    last = f"the last one, {time.monotonic_ns()}"
    call(client, ONE, last)
    wait_for(lambda: monitor.times_sent(last), reason="the last command", limit_s=10)
    return monitor.times_sent(task_id, not_before_ns=not_before_ns)


def test_the_most_repeated_call_of_a_script_counts(monitor: Monitor, client: redis.Redis) -> None:
    for script, argument in ((ONE, "t1 a"), (ONE, "t1 a"), (ONE, "t1 a"), (OTHER, "t1 a"),
                             (ONE, "t1 b"), (ONE, "t2")):
        call(client, script, argument)
    assert sent(monitor, client, "t1") == 3
    assert sent(monitor, client, "t2") == 1
    assert sent(monitor, client, "t3") == 0


def test_commands_that_are_no_script_do_not_count(monitor: Monitor, client: redis.Redis) -> None:
    client.set("t4", "x")
    client.get("t4")
    assert sent(monitor, client, "t4") == 0


def test_what_a_script_itself_does_is_not_sent_by_anybody(
        monitor: Monitor, client: redis.Redis) -> None:
    call(client, "redis.call('SET', ARGV[1], 1) redis.call('SET', ARGV[1], 1)", "t5")
    assert sent(monitor, client, "t5") == 1


def test_scripts_that_were_called_about_the_task_before_do_not_count(
        monitor: Monitor, client: redis.Redis) -> None:
    call(client, ONE, "t6")
    sent(monitor, client, "t6")
    now_ns = time.monotonic_ns()
    for script in (ONE, ONE, ONE, OTHER, OTHER):
        call(client, script, "t6")
    assert sent(monitor, client, "t6", not_before_ns=now_ns) == 2


def test_the_scripts_that_were_called_are_known_by_their_sha(
        monitor: Monitor, client: redis.Redis) -> None:
    client.eval("return 3", 0)
    call(client, OTHER, "t7")
    sent(monitor, client, "t7")
    assert monitor.scripts() >= {client.script_load(ONE), client.script_load(OTHER)}
    assert client.script_load("return 3") not in monitor.scripts()


def test_it_ends_with_its_block(lab: Lab, client: redis.Redis) -> None:
    with lab.broker.connect() as watched, Monitor(watched) as monitor:
        call(client, ONE, "t7")
        sent(monitor, client, "t7")
    call(client, ONE, "t7")
    assert monitor.times_sent("t7") == 1
