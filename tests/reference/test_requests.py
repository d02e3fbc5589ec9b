"""What every request goes through: ids, bodies that are no submissions, and the one form of a
refusal."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from dtq_reference import requests
from dtq_reference.errors import DtqError
from dtq_reference.operations import Operations

from tests.reference.engine import Engine
from tests.reference.http import Client, asked, is_refusal, served

DEEP = b'{"task_type":"echo_task","payload":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001
NUL = json.dumps("a\0b").encode()


@pytest.fixture
def client(engine: Engine) -> Iterator[Client]:
    with asked(engine, max_payload_bytes=2000) as client:
        yield client


def submission(**fields: Any) -> bytes:
    return json.dumps({"task_type": "echo_task", **fields}).encode()


BAD: dict[str, tuple[bytes, int, str]] = {
    "no body": (b"", 400, "INVALID_TASK"),
    "no JSON": (b"{", 400, "INVALID_TASK"),
    "a byte order mark": (b"\xef\xbb\xbf" + submission(), 400, "INVALID_TASK"),
    "no UTF-8": (b'{"task_type":"\xff"}', 400, "INVALID_TASK"),
    "a list": (b"[]", 400, "INVALID_TASK"),
    "a number": (b"1", 400, "INVALID_TASK"),
    "nothing": (b"null", 400, "INVALID_TASK"),
    "no type": (b"{}", 400, "INVALID_TASK"),
    "an empty type": (submission(task_type=""), 400, "INVALID_TASK"),
    "a type of 201 characters": (submission(task_type="x" * 201), 400, "INVALID_TASK"),
    "an unknown field": (submission(colour="red"), 400, "INVALID_TASK"),
    "a field of Python": (submission(self=1), 400, "INVALID_TASK"),
    "a payload that is a list": (submission(payload=[]), 400, "INVALID_TASK"),
    "a payload that is a string": (submission(payload="x"), 400, "INVALID_TASK"),
    "no payload": (submission(payload=None), 400, "INVALID_TASK"),
    "NaN": (b'{"task_type":"echo_task","payload":{"a":NaN}}', 400, "INVALID_TASK"),
    "infinity": (b'{"task_type":"echo_task","payload":{"a":1e400}}', 400, "INVALID_TASK"),
    "10,000 levels": (DEEP, 400, "INVALID_TASK"),
    "a lone surrogate": (b'{"task_type":"echo_task","payload":{"a":"\\ud800"}}', 400,
                         "INVALID_TASK"),
    "a type with a lone surrogate": (b'{"task_type":"\\ud800"}', 400, "INVALID_TASK"),
    "NUL as a byte": (b'{"task_type":"a\0b"}', 400, "INVALID_TASK"),
    "a queue with NUL": (b'{"task_type":"echo_task","queue":' + NUL + b"}", 400, "INVALID_TASK"),
    "an id with NUL": (b'{"task_type":"echo_task","task_id":' + NUL + b"}", 400, "INVALID_TASK"),
    "4 KB + 1 of metadata": (submission(metadata={"a": "x" * 4089}), 400, "INVALID_TASK"),
    "metadata that is a list": (submission(metadata=[]), 400, "INVALID_TASK"),
    "a payload one byte too long": (submission(payload={"a": "x" * 1993}), 413,
                                    "PAYLOAD_TOO_LARGE"),
    "an upper-case id": (submission(task_id="A" * 32), 400, "INVALID_TASK"),
    "an id of 31 digits": (submission(task_id="a" * 31), 400, "INVALID_TASK"),
    "an id with a line end": (submission(task_id="a" * 32 + "\n"), 400, "INVALID_TASK"),
    "an upper-case queue": (submission(queue="Mail"), 400, "INVALID_TASK"),
    "priority 10": (submission(priority=10), 400, "INVALID_TASK"),
    "priority -1": (submission(priority=-1), 400, "INVALID_TASK"),
    "priority 5.5": (submission(priority=5.5), 400, "INVALID_TASK"),
    "priority true": (submission(priority=True), 400, "INVALID_TASK"),
    "no attempt": (submission(max_attempts=0), 400, "INVALID_TASK"),
    "eleven attempts": (submission(max_attempts=11), 400, "INVALID_TASK"),
    "no time": (submission(timeout_ms=0), 400, "INVALID_TASK"),
    "too much time": (submission(timeout_ms=3_600_001), 400, "INVALID_TASK"),
    "a delay into the past": (submission(delay_ms=-1), 400, "INVALID_TASK"),
    "an endless delay": (b'{"task_type":"echo_task","delay_ms":1e999}', 400, "INVALID_TASK"),
    "no time to live": (submission(metadata={"ttl_seconds": 0}), 400, "INVALID_TASK"),
    "a negative time to live": (submission(metadata={"ttl_seconds": -1}), 400, "INVALID_TASK"),
    "an endless time to live": (
        b'{"task_type":"echo_task","metadata":{"ttl_seconds":1e999}}', 400, "INVALID_TASK"),
    "a time to live in words": (submission(metadata={"ttl_seconds": "soon"}), 400, "INVALID_TASK"),
    "an integer of 5,000 digits": (
        b'{"task_type":"echo_task","payload":{"a":' + b"9" * 5000 + b"}}", 400, "INVALID_TASK"),
}


def test_bad_input_is_refused_and_leaves_nothing(engine: Engine, client: Client) -> None:
    for name, (content, status, code) in BAD.items():
        answer = client.post("/tasks", content=content)
        assert is_refusal(answer, status, code), name
    assert engine.dump() == {}


def test_bad_input_in_a_batch_is_refused_item_by_item(engine: Engine, client: Client) -> None:
    for name, (content, status, code) in BAD.items():
        answer = client.post("/tasks/batch", content=b'{"tasks":[' + content + b"]}")
        if answer.status_code == 200:
            [outcome] = answer.json()["outcomes"]
            assert (outcome["status"], outcome["body"]["code"]) == (status, code), name
        else:
            assert answer.status_code in (400, 413), name
    assert engine.dump() == {}


def test_the_limits_themselves_are_accepted(client: Client) -> None:
    for fields in ({"payload": {"a": "x" * 1992}}, {"metadata": {"a": "x" * 4088}},
                   {"payload": {"a": "\u0001" * 331}}, {"max_attempts": 10}, {"timeout_ms": 1},
                   {"priority": 0}, {"queue": "a" * 64}, {"task_type": "x" * 200},
                   {"metadata": {"ttl_seconds": 0.5}}, {"payload": {"a": "a\0b"}}):
        answer = client.post("/tasks", content=submission(**fields))
        assert answer.status_code == 202, (fields, answer.text)
        assert client.get(f"/tasks/{answer.json()['task_id']}").status_code == 200


def test_a_body_may_spell_each_byte_as_six(client: Client) -> None:
    payload, metadata = r"\u0061" * 1992, r"\u0061" * 4088
    answer = client.post("/tasks", content=(
        f'{{"task_type":"echo_task","payload":{{"a":"{payload}"}},'
        f'"metadata":{{"a":"{metadata}"}}}}').encode())
    assert answer.status_code == 202, answer.text


def test_an_endless_body_is_not_read_to_its_end(client: Client) -> None:
    def endless() -> Iterator[bytes]:
        yield b'{"task_type":"echo_task","payload":{"a":"'
        for _ in range(1000):
            yield b"x" * 10_000

    answer = client.http.post("/api/v1/tasks", content=endless())
    assert is_refusal(answer, 413, "PAYLOAD_TOO_LARGE")


# Ids and forms ----------------------------------------------------------------------------------

def test_a_request_id_is_echoed_and_one_that_is_no_id_is_replaced(client: Client) -> None:
    assert client.get("//health", x_request_id="r-1.a_B").headers["x-request-id"] == "r-1.a_B"
    for odd in ("", "a b", "a\tb", "<script>", "x" * 65, "{jndi:ldap}"):
        made = client.get("//health", x_request_id=odd).headers["x-request-id"]
        assert len(made) == 32
        assert made.isalnum()
    assert client.get("//health").headers["x-request-id"] != \
        client.get("//health").headers["x-request-id"]


def test_what_has_no_route_is_refused_in_the_same_form(client: Client) -> None:
    assert is_refusal(client.get("//nowhere"), 404, "NOT_FOUND")
    assert is_refusal(client.get("/tasks/"), 404, "NOT_FOUND")
    wrong = client("DELETE", "/tasks")
    assert is_refusal(wrong, 405, "METHOD_NOT_ALLOWED")
    assert wrong.headers["allow"]


def test_a_fault_of_ours_is_told_without_its_traceback(
        client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("with a secret")

    monkeypatch.setattr(Operations, "get", broken)
    with caplog.at_level(logging.ERROR, logger="dtq.api"):
        answer = client.get("/tasks/x", x_request_id="r-1")
    assert is_refusal(answer, 500, "INTERNAL_ERROR")
    assert "secret" not in answer.text
    [record] = [record for record in caplog.records if record.name == "dtq.api"]
    assert "r-1" in record.getMessage()
    assert record.exc_info is not None


@pytest.mark.slow
def test_without_redis_nothing_is_said_to_have_happened(engine: Engine) -> None:
    nowhere = msgspec.structs.replace(engine.settings, redis_url="redis://127.0.0.1:1/0")
    with served(nowhere) as url, httpx.Client(base_url=url) as http:
        client = Client(http)
        assert client.get("//health").status_code == 200
        assert is_refusal(client.get("//ready"), 503, "NOT_READY")
        answer = client.get("/queues")
        assert is_refusal(answer, 503, "BROKER_UNAVAILABLE")
        assert int(answer.headers["retry-after"]) >= 1
        scraped = client.get("//metrics")
        assert scraped.status_code == 200
        assert "dtq_queue_depth" not in scraped.text
        assert 'dtq_redis_operations_total{operation="stats",result="error"}' in scraped.text


@pytest.mark.parametrize(("fields", "queue"), [
    ({}, "default"), ({"queue": "mail"}, "mail"), ({"queue": "UPPER"}, ""), ({"queue": 1}, ""),
    ([], ""), (None, "")])
def test_a_label_is_a_queues_name_or_empty(fields: Any, queue: str) -> None:
    assert requests.queue_of(fields) == queue


def test_a_header_beats_the_field_unless_that_is_unfit() -> None:
    assert requests.with_key({"a": 1}, None) == {"a": 1}
    assert requests.with_key({"a": 1}, "k") == {"a": 1, "idempotency_key": "k"}
    assert requests.with_key({"idempotency_key": "f"}, "k") == {"idempotency_key": "k"}
    assert requests.with_key({"idempotency_key": ""}, "k") == {"idempotency_key": ""}
    assert requests.with_key([], "k") == []
    assert requests.with_key({}, "ü".encode().decode("latin-1")) == {"idempotency_key": "ü"}
    with pytest.raises(DtqError, match="not UTF-8"):
        requests.with_key({}, "\xff")
