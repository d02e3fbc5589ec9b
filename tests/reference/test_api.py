"""The HTTP API on a real broker: each route, and what it is refused for."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
from dtq_conformance.lab import Lab, LabProcess
from dtq_conformance.waiting import wait_for
from dtq_reference import openapi
from dtq_reference.calls import Call
from dtq_reference.transport import AsyncTransport
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.reference.engine import Engine, failed, succeeded
from tests.reference.http import LIMIT_S, TASK_ID, Client, asked, is_refusal


@pytest.fixture
def client(engine: Engine) -> Iterator[Client]:
    with asked(engine) as client:
        yield client


def bury(engine: Engine) -> str:
    """A task that failed for good."""
    task_id = engine.submit()
    worker = engine.worker()
    engine.settle(worker, failed(engine.take_one(worker), retryable=False))
    return task_id


# Submission -------------------------------------------------------------------------------------

def test_a_task_is_accepted_and_can_be_looked_up(client: Client) -> None:
    answer = client.post("/tasks", {
        "task_type": "echo_task", "payload": {"to": "ü"}, "task_id": TASK_ID, "queue": "mail",
        "priority": 9, "metadata": {"from": "a test"}})
    assert (answer.status_code, answer.json()) == (202, {"task_id": TASK_ID, "status": "queued"})
    task = client.get(f"/tasks/{TASK_ID}").json()
    assert (task["payload"], task["queue"], task["priority"], task["metadata"]) == (
        {"to": "ü"}, "mail", 9, {"from": "a test"})


def test_a_delayed_task_is_pending(client: Client) -> None:
    answer = client.post("/tasks", {"task_type": "echo_task", "delay_ms": 60_000})
    assert answer.json()["status"] == "pending"


def test_a_submission_sent_again_is_answered_as_the_first_time(client: Client) -> None:
    body = {"task_type": "echo_task", "task_id": TASK_ID, "idempotency_key": "k"}
    first, second = client.post("/tasks", body), client.post("/tasks", body)
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert len(client.get("/tasks").json()["tasks"]) == 1
    assert 'dtq_tasks_submitted_total{queue="default",task_type="echo_task"} 1.0' in \
        client.get("//metrics").text


def test_a_submission_whose_first_answer_was_lost_is_counted(
        client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    send = AsyncTransport.call

    async def send_twice(transport: AsyncTransport, call: Call) -> Any:
        await send(transport, call)
        return await send(transport, call)

    monkeypatch.setattr(AsyncTransport, "call", send_twice)
    client.submit()
    assert 'dtq_tasks_submitted_total{queue="default",task_type="echo_task"} 1.0' in \
        client.get("//metrics").text


def test_a_key_in_progress_is_refused_and_names_its_task(client: Client) -> None:
    task_id = client.submit(idempotency_key="k")
    answer = client.post("/tasks", {"task_type": "echo_task", "idempotency_key": "k"})
    assert is_refusal(answer, 409, "IDEMPOTENCY_IN_PROGRESS")
    assert answer.json()["task_id"] == task_id


def test_the_key_of_a_finished_task_gets_the_stored_task(engine: Engine, client: Client) -> None:
    task_id = client.submit(idempotency_key="k", payload={"n": 1})
    worker = engine.worker()
    engine.settle(worker, succeeded(engine.take_one(worker), b'{"n":2}'))
    answer = client.post("/tasks", {"task_type": "echo_task", "idempotency_key": "k"})
    stored = client.get(f"/tasks/{task_id}").json()
    assert (answer.status_code, answer.json()) == (200, {**stored, "duplicate": True})
    assert stored["result"] == {"n": 2}


def test_the_header_beats_the_field(client: Client) -> None:
    body = {"task_type": "echo_task", "idempotency_key": "field"}
    assert client.post("/tasks", body, idempotency_key="header").status_code == 202
    assert client.post("/tasks", body).status_code == 202
    assert is_refusal(client.post("/tasks", body, idempotency_key="header"), 409,
                      "IDEMPOTENCY_IN_PROGRESS")


def test_a_header_spells_a_key_as_the_body_does(client: Client) -> None:
    client.submit(idempotency_key="schlüssel")
    answer = client.http.post("/api/v1/tasks", content=b'{"task_type":"echo_task"}',
                              headers={b"Idempotency-Key": "schlüssel".encode()})
    assert is_refusal(answer, 409, "IDEMPOTENCY_IN_PROGRESS")
    answer = client.http.post("/api/v1/tasks", content=b'{"task_type":"echo_task"}',
                              headers={b"Idempotency-Key": b"\xff"})
    assert is_refusal(answer, 400, "INVALID_TASK")


def test_a_full_queue_asks_to_come_back(engine: Engine) -> None:
    with asked(engine, max_queue_depth=1) as client:
        client.submit()
        answer = client.post("/tasks", {"task_type": "echo_task"})
        assert is_refusal(answer, 429, "QUEUE_FULL")
        assert int(answer.headers["retry-after"]) >= 1
        client.submit(queue="other")


def test_a_type_that_nobody_handles_is_refused_where_that_is_known(engine: Engine) -> None:
    with asked(engine, frozenset({"echo_task"})) as client:
        client.submit()
        assert is_refusal(client.post("/tasks", {"task_type": "nobody's"}), 400,
                          "UNKNOWN_TASK_TYPE")
        batch = client.post("/tasks/batch", {"tasks": [
            {"task_type": "nobody's"}, {"task_type": "echo_task"}]})
        assert [each["status"] for each in batch.json()["outcomes"]] == [400, 202]


def test_a_batch_has_an_outcome_for_each_submission(engine: Engine, client: Client) -> None:
    busy = client.submit(idempotency_key="busy")
    worker = engine.worker()
    done = client.submit(idempotency_key="done", priority=9)
    engine.settle(worker, succeeded(engine.take_one(worker)))
    answer = client.post("/tasks/batch", {"tasks": [
        {"task_type": "echo_task", "task_id": TASK_ID},
        {"task_type": "echo_task", "priority": 10},
        {"task_type": "echo_task", "idempotency_key": "busy"},
        {"task_type": "echo_task", "idempotency_key": "done"},
        17,
        {"task_type": "echo_task", "delay_ms": 60_000}]})
    assert answer.status_code == 200
    first, bad, in_progress, duplicate, number, last = answer.json()["outcomes"]
    assert first == {"status": 202, "body": {"task_id": TASK_ID, "status": "queued"}}
    assert (bad["status"], bad["body"]["code"]) == (400, "INVALID_TASK")
    assert bad["body"]["request_id"] == answer.headers["x-request-id"]
    assert (in_progress["status"], in_progress["body"]["task_id"]) == (409, busy)
    assert (duplicate["status"], duplicate["body"]["task_id"]) == (200, done)
    assert duplicate["body"]["duplicate"] is True
    assert (number["status"], number["body"]["code"]) == (400, "INVALID_TASK")
    assert (last["status"], last["body"]["status"]) == (202, "pending")


def test_what_is_no_batch_is_refused_whole(client: Client) -> None:
    bodies: list[Any] = [[], {}, {"tasks": []}, {"tasks": {}}, "tasks", None,
                         {"tasks": [1] * (openapi.BATCH_LIMIT + 1)},
                         {"tasks": [{"task_type": "echo_task"}], "more": 1}]
    for body in bodies:
        assert is_refusal(client.post("/tasks/batch", body), 400, "INVALID_TASK")
    assert client.get("/tasks").json() == {"tasks": []}


def test_a_batch_may_hold_large_payloads(client: Client) -> None:
    large = {"task_type": "echo_task", "payload": {"text": "x" * 200_000}}
    answer = client.post("/tasks/batch", {"tasks": [large] * 20})
    assert {each["status"] for each in answer.json()["outcomes"]} == {202}


# Tasks ------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("method", "path"), [
    ("GET", "/tasks/{}"), ("POST", "/tasks/{}/cancel"), ("GET", "/dlq/{}"),
    ("POST", "/dlq/{}/requeue"), ("POST", "/dlq/{}/discard")])
def test_a_task_that_is_not_known_is_not_found(client: Client, method: str, path: str) -> None:
    for task_id in (TASK_ID, "x", "A" * 32, "%00", "%F0%9F%92%A9", "%FF", "a" * 5000):
        assert is_refusal(client(method, path.format(task_id)), 404, "TASK_NOT_FOUND")


def test_tasks_are_listed_newest_first_and_filtered(engine: Engine, client: Client) -> None:
    first, second = client.submit(), client.submit(queue="mail")
    third = client.submit(delay_ms=60_000)

    def listed(query: str = "") -> set[str]:
        return {task["task_id"] for task in client.get(f"/tasks{query}").json()["tasks"]}

    assert listed() == {first, second, third}
    assert listed("?queue=mail") == {second}
    assert listed("?status=pending") == {third}
    assert listed("?queue=mail&status=pending") == set()
    assert len(listed("?limit=2")) == 2


def test_a_filter_outside_its_limits_is_refused(client: Client) -> None:
    for query in ("limit=0", "limit=10001", "limit=x", "status=odd", "status=queued%0A",
                  "queue=UPPER", "queue=a%00b", "queue=a%0A", "queue=" + "a" * 65):
        answer = client.get(f"/tasks?{query}")
        assert is_refusal(answer, 400, "INVALID_REQUEST")
        assert answer.json()["message"].startswith(query.partition("=")[0])


def test_a_waiting_task_is_cancelled_at_once(client: Client) -> None:
    task_id = client.submit()
    answer = client.post(f"/tasks/{task_id}/cancel")
    assert (answer.status_code, answer.json()) == (202, {"task_id": task_id, "status": "cancelled"})
    assert client.get(f"/tasks/{task_id}").json()["status"] == "cancelled"
    again = client.post(f"/tasks/{task_id}/cancel")
    assert is_refusal(again, 410, "TASK_TERMINAL")
    assert again.json()["status"] == "cancelled"


def test_a_running_task_is_asked_to_stop(engine: Engine, client: Client) -> None:
    task_id = client.submit()
    engine.take_one(engine.worker())
    for _ in range(2):
        assert is_refusal(client.post(f"/tasks/{task_id}/cancel"), 409, "CANCEL_REQUESTED")
    assert client.get(f"/tasks/{task_id}").json()["status"] == "running"


# Queues and workers -----------------------------------------------------------------------------

def test_queues_tell_their_numbers(engine: Engine, client: Client) -> None:
    client.submit()
    client.submit()
    client.submit(delay_ms=60_000)
    client.submit(queue="mail")
    engine.take_one(engine.worker())
    expected = {"queue": "default", "depth": 3, "pending": 1, "paused": False,
                "retry_scheduled": 1, "dlq_depth": 0, "workers_active": 1}
    assert client.get("/queues/default").json() == expected
    assert [queue["queue"] for queue in client.get("/queues").json()["queues"]] == [
        "default", "mail"]
    assert is_refusal(client.get("/queues/none"), 404, "QUEUE_NOT_FOUND")


def test_a_queue_is_paused_and_resumed(engine: Engine, client: Client) -> None:
    client.submit()
    assert client.post("/queue/default/pause").json() == {"queue": "default", "paused": True}
    assert client.get("/queues/default").json()["paused"] is True
    assert engine.take(engine.worker()).tasks == []
    assert client.post("/queue/default/resume").json() == {"queue": "default", "paused": False}
    assert client.get("/queues/default").json()["paused"] is False
    assert is_refusal(client.post("/queue/UPPER/pause"), 400, "INVALID_TASK")


def test_workers_are_listed_and_shown(engine: Engine, client: Client) -> None:
    assert client.get("/workers").json() == {"workers": []}
    identity = engine.worker("w1")
    shown = client.get("/workers/w1").json()
    assert (shown["worker_id"], shown["incarnation"], shown["status"]) == (
        "w1", identity.incarnation, "ready")
    assert client.get("/workers").json() == {"workers": [shown]}
    assert is_refusal(client.get("/workers/w2"), 404, "WORKER_NOT_FOUND")


# Dead letters -----------------------------------------------------------------------------------

def test_a_dead_letter_is_shown_and_requeued(engine: Engine, client: Client) -> None:
    task_id = bury(engine)
    letter = client.get(f"/dlq/{task_id}").json()
    assert (letter["task_id"], letter["last_error_class"]) == (task_id, "Broken")
    assert client.get("/dlq").json() == {"dead_letters": [letter]}
    answer = client.post(f"/dlq/{task_id}/requeue")
    assert (answer.status_code, answer.json()) == (200, {"task_id": task_id, "status": "queued"})
    assert client.get(f"/tasks/{task_id}").json()["status"] == "queued"
    again = client.post(f"/dlq/{task_id}/requeue")
    assert is_refusal(again, 409, "NOT_REQUEUEABLE")
    assert again.json()["status"] == "queued"


def test_a_discarded_letter_is_gone_and_its_task_says_so(engine: Engine, client: Client) -> None:
    task_id = bury(engine)
    answer = client.post(f"/dlq/{task_id}/discard")
    assert answer.json() == {"task_id": task_id, "status": "dead_lettered"}
    assert client.get("/dlq").json() == {"dead_letters": []}
    task = client.get(f"/tasks/{task_id}").json()
    assert (task["status"], task["metadata"]["discarded"]) == ("dead_lettered", True)
    assert is_refusal(client.post(f"/dlq/{task_id}/requeue"), 409, "NOT_REQUEUEABLE")


def test_all_dead_letters_are_purged(engine: Engine, client: Client) -> None:
    bury(engine)
    bury(engine)
    assert client.post("/dlq/purge").json() == {"purged": 2}
    assert client.get("/dlq").json() == {"dead_letters": []}


# The key ----------------------------------------------------------------------------------------

DESTRUCTIVE = [f"/tasks/{TASK_ID}/cancel", f"/dlq/{TASK_ID}/requeue", f"/dlq/{TASK_ID}/discard",
               "/dlq/purge", "/queue/default/pause", "/queue/default/resume"]


def test_what_destroys_needs_the_key(engine: Engine) -> None:
    with asked(engine, api_key="secret-ü") as client:
        client.submit(task_id=TASK_ID)
        before = engine.dump()
        for path in DESTRUCTIVE:
            assert is_refusal(client.post(path), 401, "UNAUTHENTICATED")
            for wrong in ("", "secret", "secret-u"):
                assert is_refusal(client.post(path, x_api_key=wrong), 403, "FORBIDDEN")
        assert engine.dump() == before
        for path in DESTRUCTIVE:
            right = client.http.post("/api/v1" + path,
                                     headers={b"X-API-Key": "secret-ü".encode()})
            assert right.status_code in (200, 202, 404, 409)


def test_reading_and_submitting_need_no_key(engine: Engine) -> None:
    with asked(engine, api_key="secret") as client:
        client.submit()
        for path in ("/tasks", "/queues", "/workers", "/dlq", "//health", "//ready"):
            assert client.get(path).status_code == 200


def test_what_destroys_is_written_down(engine: Engine) -> None:
    with asked(engine, api_key="secret") as client:
        task_id = client.submit()
        client.post(f"/tasks/{task_id}/cancel", x_api_key="secret", x_request_id="r-1")
        client.post("/queue/default/pause", x_api_key="secret", x_request_id="r-2")
    written = [{name.decode(): value.decode() for name, value in fields.items()}
               for _, fields in engine.redis.xrange(engine.keys.audit)]
    assert [(entry["actor"], entry["action"], entry["task_id"], entry["request_id"])
            for entry in written] == [("api:key", "cancel", task_id, "r-1"),
                                      ("api:key", "pause", "", "r-2")]


# The process itself -----------------------------------------------------------------------------

def test_the_process_is_healthy_and_ready(engine: Engine, client: Client) -> None:
    engine.worker()
    client.submit()
    assert client.get("//health").json() == {"status": "ok"}
    assert client.get("//ready").json() == {"status": "ready"}


def test_a_missing_group_is_told(engine: Engine, client: Client) -> None:
    engine.worker()
    client.submit()
    engine.redis.xgroup_destroy(engine.keys.stream("default", 5), "workers")
    answer = client.get("//ready")
    assert is_refusal(answer, 503, "NOT_READY")
    assert "default" in answer.json()["message"]


def test_the_metrics_are_those_of_this_installation(engine: Engine, client: Client) -> None:
    client.submit()
    client.post("/tasks", {"task_type": "echo_task", "priority": 10})
    client.post("/tasks", content=b"{")
    lines = client.get("//metrics").text.splitlines()
    for line in ('dtq_tasks_submitted_total{queue="default",task_type="echo_task"} 1.0',
                 'dtq_ingest_rejected_total{queue="default",reason="INVALID_TASK"} 1.0',
                 'dtq_ingest_rejected_total{queue="",reason="INVALID_TASK"} 1.0',
                 'dtq_redis_operations_total{operation="submit",result="ok"} 2.0',
                 'dtq_queue_depth{queue="default"} 1.0', 'dtq_workers_active 0.0'):
        assert line in lines


# As a process -----------------------------------------------------------------------------------

def start(lab: Lab, engine: Engine, name: str, **settings: object) -> LabProcess:
    """`api.run` in a process of its own, once it has said where it serves or why it does not."""
    code = "from dtq_reference import api, settings; api.run(settings.load())"
    process = lab.start(name, [sys.executable, "-c", code], role="api", environment={
        "DTQ_REDIS_URL": engine.settings.redis_url, "DTQ_KEY_PREFIX": engine.keys.prefix,
        **{f"DTQ_{field.upper()}": str(value) for field, value in settings.items()}})
    wait_for(lambda: "serving http" in process.log.read_text() or not process.alive,
             reason="the API to serve", limit_s=LIMIT_S)
    return process


@pytest.mark.slow
def test_a_process_serves_and_stops_in_good_order(lab: Lab, engine: Engine) -> None:
    process = start(lab, engine, "orderly-api", api_port=0, log_json=True)
    lines = [json.loads(line) for line in process.log.read_text().splitlines()]
    [url] = [line["message"].removeprefix("serving ") for line in lines
             if line["message"].startswith("serving ")]
    wait_for(lambda: reaches(url), reason="the API to answer", limit_s=LIMIT_S)
    with connect(f"ws{url[4:]}/ws/events") as connection:
        process.terminate()
        process.wait(LIMIT_S)
        with pytest.raises(ConnectionClosed):
            while True:
                connection.recv(timeout=LIMIT_S)
    assert process.exit_code == 0
    assert "Traceback" not in process.log.read_text()


@pytest.mark.slow
def test_a_process_logs_neither_payloads_nor_secrets(lab: Lab, engine: Engine) -> None:
    process = start(lab, engine, "quiet-api", api_port=0, log_level="DEBUG", api_key="open-sesame")
    url = process.log.read_text().split("serving ")[1].split()[0]
    wait_for(lambda: reaches(url), reason="the API to answer", limit_s=LIMIT_S)
    with httpx.Client(base_url=url) as http, connect(
            f"ws{url[4:]}/ws/events?token=canary", additional_headers={"X-API-Key": "canary"}):
        client = Client(http)
        task_id = client.submit(payload={"a": "canary"}, metadata={"b": "canary"})
        client.post("/tasks", {"task_type": "echo_task", "priority": "canary"})
        client.post("/tasks", content=b'{"canary')
        client.post(f"/tasks/{task_id}/cancel", x_api_key="canary")
        client.post(f"/tasks/{task_id}/cancel", x_api_key="open-sesame")
        client.get("//canary%0Aforged?canary")
        client.get("//ready")
    process.terminate()
    process.wait(LIMIT_S)
    log = process.log.read_text()
    assert "canary" not in log
    assert "open-sesame" not in log
    assert all(line[:2] == "20" for line in log.splitlines())


def reaches(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_a_process_without_a_port_says_so(lab: Lab, engine: Engine) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        process = start(lab, engine, "second-api", api_port=other.getsockname()[1])
        process.wait(LIMIT_S)
    assert "SettingsError: DTQ_API_HOST and DTQ_API_PORT" in process.log.read_text()
