"""Signatures: of these fields, by this key, and of nothing else."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from dtq_reference.calls import Taken
from dtq_reference.signing import is_genuine, sign
from dtq_reference.task import TaskRequest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.reference.engine import Engine, failed

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
TAKEN = Taken(level=1, entry_id="1-0", attempt=1, task_id="a" * 32, task_type="echo_task",
              payload=b"{}", max_attempts=5, timeout_ms=30_000, queue="default", alone=False,
              created_at=0, idempotency_key="", signature="")
REQUEST = TaskRequest(task_id="a" * 32, task_type="echo_task", timeout_ms=30_000)


def test_a_signature_is_the_hmac_of_the_fields_as_a_json_list() -> None:
    message = f'["{"a" * 32}","default","echo_task","ä\\n",5,9,30000,""]'.encode()
    expected = hmac.new(b"key", message, hashlib.sha256).hexdigest()
    assert sign("key", REQUEST, "ä\n", 9) == expected


def entry(payload: str, priority: int, signature: str, **fields: object) -> Taken:
    """What is taken from the stream of a priority."""
    return replace(TAKEN, payload=payload.encode(), level=10 - priority, signature=signature,
                   **fields)  # type: ignore[arg-type]


def test_what_was_submitted_and_what_is_taken_have_one_signature() -> None:
    signature = sign("key", REQUEST, "{}", 5)
    assert is_genuine("key", entry("{}", 5, signature))
    assert is_genuine("key", entry("{}", 5, signature, attempt=7, entry_id="2-0"))


@pytest.mark.parametrize("change", [
    {"task_id": "b" * 32}, {"queue": "other"}, {"task_type": "slow_task"}, {"max_attempts": 6},
    {"timeout_ms": 1}, {"idempotency_key": "k"}, {"payload": b"\xff"}], ids=str)
def test_whatever_was_changed_makes_the_signature_wrong(change: dict[str, object]) -> None:
    signed = entry("{}", 5, sign("key", TAKEN, "{}", 5))
    assert not is_genuine("key", replace(signed, **change))  # type: ignore[arg-type]


@given(TEXT, TEXT, st.integers(0, 8), TEXT)
def test_a_signature_is_that_of_one_payload_priority_and_key(
        key: str, payload: str, priority: int, other: str) -> None:
    signature = sign(key, TAKEN, payload, priority)
    assert is_genuine(key, entry(payload, priority, signature))
    assert is_genuine(key, entry(other, priority, signature)) == (other == payload)
    assert not is_genuine(key, entry(payload, priority + 1, signature))
    assert not is_genuine(f"{key}!", entry(payload, priority, signature))
    assert not is_genuine(key, entry(payload, priority, other))


# Signatures of entries --------------------------------------------------------------------------

@pytest.mark.parametrize("is_lost", [False, True])
def test_the_signature_of_an_entry_is_genuine_also_of_a_redelivery_a_retry_and_a_requeue(
        engine: Engine, is_lost: bool) -> None:
    engine = engine.with_settings(signing_key="secret")
    worker = engine.worker()
    task_id = engine.submit(payload={"a": "ü"}, priority=7, idempotency_key="k", max_attempts=2)
    if is_lost:
        engine.lose_holder()
    else:
        engine.settle(worker, failed(engine.take_one(worker)))
        engine.make_due(task_id)
        engine.promote()
    last = engine.take_one(worker)
    engine.settle(worker, failed(last))
    engine.requeue(task_id)
    for taken in (last, engine.take_one(worker)):
        assert is_genuine("secret", taken)


@pytest.mark.parametrize(("name", "value"), [
    ("payload", "{}"), ("task_type", "other"), ("queue", "other"), ("max_attempts", "9"),
    ("timeout_ms", "9"), ("idempotency_key", "other"), ("priority", "9"), ("signature", "0" * 64),
    ("signature", None), ("payload", None), ("timeout_ms", None), ("max_attempts", "many")])
def test_an_entry_that_was_altered_has_no_genuine_signature(
        engine: Engine, name: str, value: str | None) -> None:
    engine = engine.with_settings(signing_key="secret")
    task_id = engine.submit(payload={"a": 1}, idempotency_key="k")
    entry = taken_out(engine)
    entry.pop(name.encode())
    put_back(engine, task_id, entry | ({} if value is None else {name.encode(): value.encode()}))
    assert not is_genuine("secret", engine.take_one(engine.worker()))


def test_an_entry_says_the_same_in_whatever_order_its_fields_stand(engine: Engine) -> None:
    engine = engine.with_settings(signing_key="secret")
    task_id = engine.submit(payload={"a": 1}, idempotency_key="k", max_attempts=3)
    put_back(engine, task_id, dict(reversed(taken_out(engine).items())))
    taken = engine.take_one(engine.worker())
    assert is_genuine("secret", taken)
    assert (taken.task_id, taken.payload, taken.max_attempts) == (task_id, b'{"a":1}', 3)


def test_what_is_executed_is_what_the_entry_says_and_not_what_was_altered_in_the_record(
        engine: Engine) -> None:
    engine = engine.with_settings(signing_key="secret")
    task_id = engine.submit(payload={"a": 1}, idempotency_key="k")
    engine.redis.hset(engine.keys.task_prefix + task_id, mapping={
        "payload": "{}", "task_type": "other", "queue": "other", "timeout_ms": "9"})
    taken = engine.take_one(engine.worker())
    assert is_genuine("secret", taken)
    assert (taken.payload, taken.task_type, taken.queue) == (b'{"a":1}', "echo_task", "default")


def taken_out(engine: Engine) -> dict[bytes, bytes]:
    """The only entry, which has gone."""
    stream = engine.keys.stream("default", 5)
    (entry_id, entry), = engine.redis.xrange(stream)
    engine.redis.xdel(stream, entry_id)
    return dict(entry)


def put_back(engine: Engine, task_id: str, entry: dict[bytes, bytes]) -> None:
    """The task's entry now."""
    entry_id = engine.redis.xadd(engine.keys.stream("default", 5), entry)
    engine.redis.hset(engine.keys.task_prefix + task_id, "entry_id", entry_id)


def test_an_unsigned_entry_is_handed_over_without_a_signature(engine: Engine) -> None:
    engine.submit(idempotency_key="k")
    taken = engine.take_one(engine.worker())
    assert (taken.signature, taken.idempotency_key) == ("", "k")
