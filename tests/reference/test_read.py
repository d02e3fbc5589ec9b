"""The script `read`: several looks at one instant, none of which can fail the others."""

from __future__ import annotations

from dtq_reference import calls

from tests.reference.engine import Engine


def test_the_answers_come_in_order_and_what_failed_or_is_not_there_is_none(
        engine: Engine) -> None:
    task_id = engine.submit()
    key = engine.keys.task_prefix + task_id
    replies = engine.run(calls.read(
        ("GET", key), ("HGET", key, "status"), ("GET", engine.keys.result_prefix + task_id),
        ("XPENDING", engine.keys.stream("default", 5), "workers"), ("HGET", key, "priority"),
        ("EXISTS", engine.keys.paused("default"))))
    assert replies == [None, b"queued", None, None, b"5", 0]


def test_it_names_each_key_once() -> None:
    call = calls.read(("TIME",), ("HGET", "a", "x"), ("HGET", "a", "y"), ("GET", "b"))
    assert call.keys == ["a", "b"]


def test_it_cannot_write(engine: Engine) -> None:
    assert engine.run(calls.read(("SET", engine.keys.queues, "x"))) == [None]
    assert engine.dump() == {}
