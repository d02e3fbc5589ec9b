"""What several scripts share: dead letters, of which the newest DTQ_DLQ_MAXLEN exist, exactly."""

from __future__ import annotations

import pytest

from tests.reference.engine import Engine, failed


def bury(engine: Engine) -> str:
    worker = engine.worker()
    task_id = engine.submit()
    engine.settle(worker, failed(engine.take_one(worker), retryable=False))
    return task_id


@pytest.mark.parametrize("limit", [1, 3])
def test_the_newest_dead_letters_exist_and_no_more(engine: Engine, limit: int) -> None:
    engine = engine.with_settings(dlq_maxlen=limit)
    buried = []
    for _ in range(limit + 2):
        buried.append(bury(engine))
        assert engine.letters() == buried[-limit:]


def test_the_task_of_a_trimmed_letter_begins_to_expire_and_that_of_a_kept_one_does_not(
        engine: Engine) -> None:
    engine = engine.with_settings(dlq_maxlen=2)
    trimmed, *kept = [bury(engine) for _ in range(3)]
    assert engine.expires(trimmed)
    assert [engine.expires(task_id) for task_id in kept] == [False, False]
    assert engine.status(trimmed) == "dead_lettered"


def test_a_lower_limit_takes_hold_at_the_next_letter(engine: Engine) -> None:
    before = [bury(engine) for _ in range(4)]
    last = bury(engine.with_settings(dlq_maxlen=2))
    assert engine.letters() == [before[-1], last]
    assert [engine.expires(task_id) for task_id in before] == [True, True, True, False]


def test_orphans_and_lost_workers_trim_too(engine: Engine) -> None:
    engine = engine.with_settings(dlq_maxlen=1)
    first = bury(engine)
    orphan = engine.submit()
    engine.redis.delete(engine.keys.task_prefix + orphan)
    engine.take(engine.worker())
    assert engine.letters() == [orphan]
    assert engine.expires(first)
    lost = engine.submit(max_attempts=1)
    engine.lose_holder()
    engine.take(engine.worker())
    assert engine.letters() == [lost]
