"""The script `read`: several looks at one instant. A queue without a group fails none of them."""

from __future__ import annotations

import pytest
from dtq_reference import calls
from redis.exceptions import ResponseError

from tests.reference.engine import Engine


def test_the_answers_come_in_order_and_what_is_not_there_is_none(
        engine: Engine) -> None:
    task_id = engine.submit()
    key = engine.keys.task_prefix + task_id
    replies = engine.run(calls.read(
        ("HGET", key, "status"), ("GET", engine.keys.result_prefix + task_id),
        ("XPENDING", engine.keys.stream("default", 5), "workers"), ("HGET", key, "priority"),
        ("EXISTS", engine.keys.paused("default"))))
    assert replies == [b"queued", None, None, b"5", 0]


def test_it_names_each_key_once() -> None:
    call = calls.read(("TIME",), ("HGET", "a", "x"), ("HGET", "a", "y"), ("GET", "b"))
    assert call.keys == ["a", "b"]


def test_it_cannot_write(engine: Engine) -> None:
    with pytest.raises(ResponseError, match=r"[Ww]rite"):
        engine.run(calls.read(("SET", engine.keys.queues, "x")))
    assert engine.dump() == {}


def test_a_key_of_another_type_is_said(engine: Engine) -> None:
    key = engine.keys.task_prefix + engine.submit()
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        engine.run(calls.read(("HGET", key, "status"), ("GET", key)))
