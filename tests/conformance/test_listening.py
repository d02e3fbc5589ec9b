"""Subscribers hear what was published while they listened, all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dtq_conformance.bench import Bench
from dtq_conformance.exchange import Heard, Subscription
from dtq_conformance.front import api_of
from dtq_conformance.lab import Lab
from dtq_conformance.listening import on_the_channel, on_the_websocket, publish
from dtq_conformance.target import load_target

from tests.conformance.miniature import TIMING, lab_in

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    def opened(lab: Lab) -> Bench:
        return Bench(lab, load_target("reference"), TIMING, 1)

    with lab_in(tmp_path_factory.mktemp("logs")) as lab:
        bench = opened(lab)
        yield bench
        bench.close()


def event(number: int) -> dict[str, object]:
    return {"event_id": f"e-{number}", "ts": number, "type": "TASK_QUEUED"}


def heard(bench: Bench, subscriber: str) -> list[object]:
    return [each.event["event_id"] for each in bench.records
            if isinstance(each, Heard) and each.subscriber == subscriber]


def test_the_channel_is_heard_to_the_last_event(bench: Bench) -> None:
    publish(bench, event(0))
    with on_the_channel(bench):
        publish(bench, *(event(number) for number in range(1, 200)))
    publish(bench, event(200))
    assert heard(bench, "channel") == [f"e-{number}" for number in range(1, 200)]
    [subscription] = [each for each in bench.records if isinstance(each, Subscription)]
    assert (subscription.via, subscription.closed) == ("channel", None)
    assert subscription.from_ns < subscription.to_ns


def test_a_websocket_hears_the_same(bench: Bench) -> None:
    with api_of(bench) as api, on_the_websocket(bench, api, "client"):
        publish(bench, event(1), event(2))
    assert heard(bench, "client") == ["e-1", "e-2"]


def test_what_is_no_event_is_kept_as_it_came(bench: Bench) -> None:
    with on_the_channel(bench):
        bench.keyspace.client.publish(f"{bench.keyspace.prefix}events", b"hello")
    assert bench.records[-2].event == "hello"  # type: ignore[union-attr]
