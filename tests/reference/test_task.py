"""A submission: its defaults, its limits, and refusals that name the field."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from dtq_reference.errors import DtqError
from dtq_reference.task import MAX_LEVELS, TaskRequest, encode_json, request_from, task_from
from hypothesis import given
from hypothesis import strategies as st

TASK_ID = "0123456789abcdef" * 2


def request(**fields: Any) -> TaskRequest:
    return request_from({"task_type": "echo_task", **fields}, max_payload_bytes=100,
                        attempts_limit=10, default_timeout_ms=30_000)


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


BAD: dict[str, list[Any]] = {
    "task_type": ["", "x" * 201, 5, None, "\udcff"],
    "payload": [[], "text", None, {"a": math.nan}, {"a": math.inf}, {"a": object()}, {"a": b"x"},
                {"a": "\ud800"}, {"\ud800": 1}, {1: 2}, deep(10_000), {"a": 10 ** 5000}],
    "task_id": ["", TASK_ID.upper(), TASK_ID[1:], TASK_ID + "0", TASK_ID + "\n", 5,
                "01234567-89ab-cdef-0123-456789abcdef"],
    "queue": ["", "A", "-a", "_a", "a b", "a:b", "a\n", "ä", "x" * 65, None],
    "priority": [-1, 10, 5.5, "5", True, None, 10 ** 30],
    "max_attempts": [0, -1, 11, 1.5, "1", None, 10 ** 30],
    "timeout_ms": [0, -1, 3_600_001, 1.5, "1"],
    "delay_ms": [-1, 10 * 365 * 86_400_000 + 1, 1.5, "1", None],
    "metadata": [[], "text", {"a": "x" * 4089}, {"a": math.nan}, {"a": "\ud800"}, deep(10_000),
                 *({"ttl_seconds": ttl} for ttl in (0, -1, True, "5", None, [], math.nan, math.inf,
                                                    -0.0, 1e-400, 10 ** 400, 1e10))],
    "idempotency_key": ["", "x" * 256, 5, True, "a\x00", "a\n", "\udcff", ["a"]],
}


def test_every_field_has_bad_values_here() -> None:
    assert set(BAD) == set(TaskRequest.__struct_fields__)


@pytest.mark.parametrize(("field", "place"), [(field, place) for field, values in BAD.items()
                                              for place in range(len(values))])
def test_a_field_outside_its_limits_is_refused_and_named(field: str, place: int) -> None:
    with pytest.raises(DtqError) as refused:
        request(**{field: BAD[field][place]})
    assert refused.value.code == "INVALID_TASK"
    assert refused.value.message.startswith(("ttl_seconds", field))


@pytest.mark.parametrize(("field", "value"), [
    ("task_type", "x" * 200), ("payload", {"a": "x" * 92}), ("task_id", TASK_ID),
    ("queue", "0" + "_-" * 31 + "z"), ("priority", 0), ("priority", 9), ("max_attempts", 1),
    ("max_attempts", 10), ("timeout_ms", 1), ("timeout_ms", 3_600_000), ("delay_ms", 0),
    ("delay_ms", 10 * 365 * 86_400_000), ("metadata", {"a": "x" * 4088})])
def test_a_field_at_its_limit_is_accepted(field: str, value: Any) -> None:
    assert getattr(request(**{field: value}), field) == value


def test_a_payload_is_measured_as_compact_utf8_json() -> None:
    assert request(payload={"a": "ä" * 46})
    with pytest.raises(DtqError, match="payload has 101 bytes; at most 100") as refused:
        request(payload={"a": "x" * 93})
    assert refused.value.code == "PAYLOAD_TOO_LARGE"


def test_an_unknown_field_and_a_missing_one_are_named() -> None:
    with pytest.raises(DtqError, match="unknown field `colour`"):
        request(colour="red")
    with pytest.raises(DtqError, match="required field `task_type`"):
        request_from({}, max_payload_bytes=1, attempts_limit=1, default_timeout_ms=1)


def test_what_is_left_out_gets_the_defaults_of_the_contract() -> None:
    made = request()
    assert (made.queue, made.priority, made.max_attempts, made.timeout_ms, made.delay_ms,
            made.payload, made.metadata) == ("default", 5, 5, 30_000, 0, {}, {})


@pytest.mark.parametrize(("limit", "default"), [(1, 1), (3, 3), (5, 5), (10, 5)])
def test_the_default_of_the_attempts_keeps_to_the_limit_and_a_number_that_was_asked_for_must(
        limit: int, default: int) -> None:
    def ask(**fields: Any) -> int:
        return request_from({"task_type": "t", **fields}, max_payload_bytes=9,
                            attempts_limit=limit, default_timeout_ms=1).max_attempts

    assert (ask(), ask(max_attempts=1)) == (default, 1)
    with pytest.raises(DtqError, match=f"max_attempts is {limit + 1}; at most {limit}"):
        ask(max_attempts=limit + 1)


@pytest.mark.parametrize(("levels", "is_allowed"), [(MAX_LEVELS, True), (MAX_LEVELS + 1, False)])
def test_json_is_nested_so_deep_and_no_deeper(levels: int, is_allowed: bool) -> None:
    for value in (deep(levels), {"a": [[deep(levels - 3)]]}):
        if is_allowed:
            assert json.loads(encode_json(value, "payload")) == value
        else:
            with pytest.raises(DtqError, match=f"payload is nested too deep; at most {MAX_LEVELS}"):
                encode_json(value, "payload")
    assert encode_json({"a": [{}] * 500}, "payload")


@pytest.mark.parametrize("word", ["null", "true", "1", "[]", ""])
def test_text_in_a_tasks_record_stays_text(word: str) -> None:
    numbers = dict.fromkeys(("priority", "max_attempts", "timeout_ms", "attempt", "created_at",
                             "available_at"), "1")
    words = dict.fromkeys(("task_id", "queue", "task_type", "status", "idempotency_key",
                           "worker_id", "error_class", "error_message"), word)
    task = task_from({"payload": "{}", "metadata": "{}", **numbers, **words}, None)
    assert {name: getattr(task, name) for name in words} == words


def test_ids_are_drawn_as_a_client_would_have_to_give_them() -> None:
    first, second = request(), request()
    assert first.task_id != second.task_id
    assert request(task_id=first.task_id).task_id == first.task_id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3), max_leaves=10)


@given(JSON)
def test_every_json_value_is_encoded_and_comes_back_as_it_was(value: Any) -> None:
    assert json.loads(encode_json(value, "payload")) == value
