"""The script `discard`: dead letters are thrown away, one or all; their tasks are remembered."""

from __future__ import annotations

import pytest
from dtq_reference import calls

from tests.reference.engine import ACTOR, Engine, refused


def test_a_discarded_letter_is_gone_and_its_task_stays_dead_lettered_for_its_retention(
        engine: Engine) -> None:
    kept, discarded = engine.bury(), engine.bury(metadata={"a": 1})
    ear = engine.listen()
    engine.discard(discarded)
    assert engine.letters() == [kept]
    task = engine.queue.get(discarded)
    assert task is not None
    assert (task.status, task.metadata) == ("dead_lettered", {"a": 1, "discarded": True})
    assert (engine.expires(discarded), engine.expires(kept)) == (True, False)
    assert ear.types() == []
    (line,) = engine.audited()
    assert (line["actor"], line["action"], line["task_id"], line["request_id"]) == (
        ACTOR.name, "discard", discarded, ACTOR.request_id)


def test_a_second_discard_is_refused_with_the_status(engine: Engine) -> None:
    task_id = engine.bury()
    engine.discard(task_id)
    with refused("NOT_REQUEUEABLE", status="dead_lettered"):
        engine.discard(task_id)
    assert len(engine.audited()) == 1


def test_what_has_no_letter_is_refused_with_its_status(engine: Engine) -> None:
    engine.bury()
    with refused("NOT_REQUEUEABLE", status="queued"):
        engine.discard(engine.submit())


@pytest.mark.parametrize("task_id", ["0" * 32, "", "x", "\udcff"])
def test_what_is_not_known_is_not_found_and_no_letter_goes(engine: Engine, task_id: str) -> None:
    engine.bury()
    before = engine.dump()
    with refused("TASK_NOT_FOUND"):
        engine.discard(task_id)
    assert engine.dump() == before


def test_an_orphans_letter_can_be_discarded(engine: Engine) -> None:
    orphan = engine.submit()
    engine.redis.delete(engine.keys.task_prefix + orphan)
    engine.take(engine.worker())
    kept = engine.bury()
    engine.discard(orphan)
    assert engine.letters() == [kept]
    assert engine.record(orphan) == {}


def test_a_purge_discards_all_in_steps_and_audits_each(
        engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "DISCARD_LIMIT", 2)
    buried = [engine.bury() for _ in range(5)]
    assert engine.do(engine.operations.purge_dead_letters(ACTOR)) == 5
    assert engine.letters() == []
    assert [(line["action"], line["task_id"]) for line in engine.audited()] == [
        ("purge_dlq", task_id) for task_id in buried]
    assert all(map(engine.expires, buried))
    assert engine.do(engine.operations.purge_dead_letters(ACTOR)) == 0


def test_a_task_that_lives_again_under_the_id_of_an_orphans_letter_does_not_expire(
        engine: Engine) -> None:
    task_id = engine.submit()
    engine.redis.delete(engine.keys.task_prefix + task_id)
    engine.take(engine.worker())
    engine.submit(task_id=task_id)
    engine.do(engine.operations.purge_dead_letters(ACTOR))
    assert engine.letters() == []
    assert not engine.expires(task_id)
