"""Signatures: of these fields, by this key, and of nothing else."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

import pytest
from dtq_reference.calls import Taken
from dtq_reference.signing import is_genuine, sign
from dtq_reference.task import TaskRequest
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
TAKEN = Taken(level=1, entry_id="1-0", attempt=1, task_id="a" * 32, task_type="echo_task",
              payload=b"{}", max_attempts=5, timeout_ms=30_000, queue="default", alone=False,
              created_at=0, idempotency_key="", signature="")
REQUEST = TaskRequest(task_id="a" * 32, task_type="echo_task", timeout_ms=30_000)


def test_a_signature_is_the_hmac_of_the_fields_as_a_json_list() -> None:
    message = f'["{"a" * 32}","default","echo_task","ä\\n",5,9,30000,""]'.encode()
    expected = hmac.new(b"key", message, hashlib.sha256).hexdigest()
    assert sign("key", REQUEST, "ä\n", 9) == expected


def test_what_was_submitted_and_what_is_taken_have_one_signature() -> None:
    assert is_genuine("key", TAKEN, "{}", 5, sign("key", REQUEST, "{}", 5))
    assert is_genuine("key", replace(TAKEN, attempt=7, entry_id="2-0"), "{}", 5,
                      sign("key", REQUEST, "{}", 5))


@pytest.mark.parametrize("change", [
    {"task_id": "b" * 32}, {"queue": "other"}, {"task_type": "slow_task"}, {"max_attempts": 6},
    {"timeout_ms": 1}, {"idempotency_key": "k"}], ids=str)
def test_whatever_was_changed_makes_the_signature_wrong(change: dict[str, object]) -> None:
    changed = replace(TAKEN, **change)  # type: ignore[arg-type]
    assert not is_genuine("key", changed, "{}", 5, sign("key", TAKEN, "{}", 5))


@given(TEXT, TEXT, st.integers(0, 9), TEXT)
def test_a_signature_is_that_of_one_payload_priority_and_key(
        key: str, payload: str, priority: int, other: str) -> None:
    signature = sign(key, TAKEN, payload, priority)
    assert is_genuine(key, TAKEN, payload, priority, signature)
    assert is_genuine(key, TAKEN, other, priority, signature) == (other == payload)
    assert not is_genuine(key, TAKEN, payload, priority + 1, signature)
    assert not is_genuine(f"{key}!", TAKEN, payload, priority, signature)
    assert not is_genuine(key, TAKEN, payload, priority, other)
