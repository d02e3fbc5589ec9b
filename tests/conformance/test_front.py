"""The fronts of a target are asked for real, and every question is in the history."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator

import pytest
from dtq_conformance.bench import Bench, TargetFault
from dtq_conformance.exchange import Exchange, LogSearch
from dtq_conformance.front import (
    HOST,
    accepted,
    api_of,
    broker_away,
    inspected,
    run_command,
    search_logs,
    unused_port,
    want,
)
from dtq_conformance.history import Fault
from dtq_conformance.lab import Lab
from dtq_conformance.operation import Operation, Refused
from dtq_conformance.target import Command, load_target

from tests.conformance.exchanges import http, refusal
from tests.conformance.miniature import TIMING, Miniature, bench_of, lab_in

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture(scope="module")
def bench(lab: Lab) -> Iterator[Bench]:
    bench = Bench(lab, load_target("reference"), TIMING, 1)
    yield bench
    bench.close()


def test_a_submission_through_the_api_is_one_like_any_other(bench: Bench) -> None:
    with api_of(bench) as api:
        bench.records.clear()
        good = bench.submit(through=api, delay_ms=60_000, ttl_ms=90_000)
        bad = bench.submit(through=api, priority=10)
        api.demand("cancel", f"/tasks/{good}/cancel", good, want("API-08", "a cancel", 202))
        view = bench.look(good)
    assert view is not None
    assert view.status == "cancelled"
    exchanges = [each for each in bench.records if isinstance(each, Exchange)]
    assert [each.status for each in exchanges] == [202, 400, 202]
    assert exchanges[2].expects[0].clause == "API-08"
    operations = [each for each in bench.records if isinstance(each, Operation)]
    assert [(each.name, each.task_id, each.outcome) for each in operations] == [
        ("submit", good, "ok"), ("submit", bad, "refused"), ("cancel", good, "ok"),
        ("look", good, "ok")]
    assert not api.process.alive


def test_items_of_a_batch_are_noted_as_submissions(bench: Bench) -> None:
    with api_of(bench) as api:
        bench.records.clear()
        fields = {"task_id": bench.new_id(), "payload": {"steps": []}, "priority": 3}
        api.note(fields, 202, {"task_id": fields["task_id"]}, 5)
        api.note(fields, 400, {"code": "INVALID_TASK", "message": "no"}, 6)
        api.note(fields, 200, {"task_id": "other", "duplicate": True, "status": "failed"}, 7)
    noted = [each for each in bench.records if isinstance(each, Operation)]
    assert [(each.outcome, each.answer) for each in noted] == [
        ("ok", {}), ("refused", {"code": "INVALID_TASK", "message": "no"}),
        ("ok", {"task_id": "other", "duplicate": True})]
    assert bench.submissions.pop(str(fields["task_id"])).priority == 3


@pytest.mark.parametrize(("status", "body", "outcome"), [
    (409, refusal("IDEMPOTENCY_IN_PROGRESS", task_id="x"), Refused),
    (503, refusal("BROKER_UNAVAILABLE"), Refused),
    (503, refusal("BROKER_UNREACHABLE"), ConnectionError), (500, "oh", ConnectionError),
    (None, None, ConnectionError)])
def test_what_is_no_acceptance_is_a_refusal_or_unknown(
        status: int | None, body: object, outcome: type[Exception]) -> None:
    with pytest.raises(outcome):
        accepted(http("POST", "/api/v1/tasks", status, body))


def test_a_command_is_run_to_its_end_with_settings_of_its_own(bench: Bench) -> None:
    good = run_command(bench, "queue", "stats")
    bad = run_command(bench, "queue", "stats", settings={"DTQ_API_PORT": "x"})
    assert (good.status, good.messages) == (0, "")
    assert isinstance(good.body, list)
    assert (bad.status, bad.body) == (2, "")
    assert "DTQ_API_PORT" in bad.messages


def test_the_logs_are_searched_line_by_line(bench: Bench) -> None:
    bench.lab.start("api-odd", [sys.executable, "-c", "print('a key'); print('key b')"],
                    role="api").wait(10)
    for what in ("secret", "forged line"):
        search_logs(bench, what, "key")
    found = {each.what: each.found for each in bench.records
             if isinstance(each, LogSearch) and each.process == "api-odd"}
    assert found == {"secret": ["a key", "key b"], "forged line": ["key b"]}


def test_a_broker_that_is_away_is_a_fault_in_the_history(bench: Bench) -> None:
    bench.records.clear()
    with broker_away(bench) as is_away:
        assert is_away
    assert [each.phase for each in bench.records if isinstance(each, Fault)] == [
        "begin", "bit", "end"]
    assert bench.keyspace.client.ping()


def test_what_the_harness_saw_is_recorded(bench: Bench) -> None:
    seen = inspected(bench, "worker-1", ["ports"], {"ports": []}, want("MET-05", "a look", 0))
    assert bench.records[-1] is seen
    assert (seen.via, seen.status) == ("inspection", 0)


def test_a_target_without_a_front_cannot_be_asked_there(lab: Lab) -> None:
    with bench_of(Miniature(), lab) as bench:
        with pytest.raises(TargetFault, match=r"claims http, and has no api"), api_of(bench):
            pass
        with pytest.raises(TargetFault, match="has no command"):
            run_command(bench, "list")


def test_an_api_that_does_not_start_is_told_with_its_last_word(
        bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Command([sys.executable, "-c", "import sys; sys.exit('no port for me')"],
                   dict(os.environ))
    monkeypatch.setattr(bench.target, "api", lambda _: gone)
    with pytest.raises(TargetFault, match=r"exited with code 1 .* no port for me"), api_of(bench):
        pass


def test_a_port_is_kept_for_a_server_of_the_target(
        need: Callable[[object, str], None]) -> None:
    need(sys.platform == "linux", "elsewhere no socket can keep a port")
    port = unused_port()
    with socket.create_server((HOST, port)):
        pass
    with socket.socket() as anybody, pytest.raises(OSError, match="in use"):
        anybody.bind((HOST, port))
