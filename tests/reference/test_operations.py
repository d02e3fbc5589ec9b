"""The operations: what they answer, and that bad input is refused in a sentence and leaves nothing.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from dtq_reference.errors import DtqError
from dtq_reference.operations import Submitted
from dtq_reference.task import MAX_LEVELS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference.engine import ACTOR, Engine, failed, refused, succeeded

TASK_ID = "0123456789abcdef" * 2
NO_TASK_IDS = ["0" * 32, "", "x", TASK_ID.upper(), TASK_ID[1:], "0" * 31 + "\n", "\udcff"]


# Bad submissions --------------------------------------------------------------------------------

def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": [value]} if isinstance(value, dict) else {"a": value}
    return value


def objects(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


BAD: list[tuple[str, dict[Any, Any]]] = [
    ("payload", {"payload": {"a": math.nan}}), ("payload", {"payload": {"a": -math.inf}}),
    ("payload", {"payload": objects(10_000)}), ("payload", {"payload": objects(MAX_LEVELS + 1)}),
    ("payload", {"payload": {"a": nested(MAX_LEVELS)}}),
    ("payload", {"payload": {"a": "\ud800"}}), ("payload", {"payload": {"\udfff": 1}}),
    ("payload", {"payload": []}), ("payload", {"payload": "{}"}), ("payload", {"payload": None}),
    ("payload", {"payload": {"a": b"bytes"}}), ("payload", {"payload": {"a": {1, 2}}}),
    ("metadata", {"metadata": {"a": "x" * 4089}}), ("metadata", {"metadata": {"a": "ä" * 2045}}),
    ("metadata", {"metadata": objects(10_000)}), ("metadata", {"metadata": {"a": "\ud800"}}),
    *(("ttl_seconds", {"metadata": {"ttl_seconds": ttl}}) for ttl in (
        -1, 0, -0.0, math.inf, -math.inf, math.nan, True, False, "5", None, [], 10 ** 400, 1e300)),
    *(("delay_ms", {"delay_ms": delay}) for delay in (
        -1, math.inf, math.nan, 1.5, True, "1", None, 10 ** 30, 2 ** 63)),
    *(("task_id", {"task_id": task_id}) for task_id in (
        TASK_ID.upper(), TASK_ID[1:], TASK_ID + "0", "", None, 5, "\ud800" * 32)),
    *(("task_type", {"task_type": name}) for name in (
        "", "a\x00b", "a\nb", "\ud800", "x" * 201, 5, None, True)),
    *(("idempotency_key", {"idempotency_key": key}) for key in (
        "", "a\x00", "a\r\n", "\ud800", "x" * 256, 5, True)),
    *(("queue", {"queue": queue}) for queue in ("", "A", "a:b", "\ud800", "x" * 65, None)),
    *((name, {name: value}) for name in ("priority", "max_attempts", "timeout_ms")
      for value in (True, -1, 1.5, "1", 10 ** 30)),
    ("colour", {"colour": "red"}), ("ud800", {"\ud800": 1}), ("", {1: 2}),
]


@pytest.mark.parametrize("place", range(len(BAD)))
def test_a_field_outside_its_limits_is_refused_as_invalid_and_nothing_is_written(
        engine: Engine, place: int) -> None:
    named, fields = BAD[place]
    [refusal] = engine.do(engine.operations.submit_all([{"task_type": "echo_task", **fields}]))
    assert isinstance(refusal, DtqError)
    assert refusal.code == "INVALID_TASK"
    assert named in refusal.message
    refusal.message.encode()
    assert engine.dump() == {}


@pytest.mark.parametrize("fields", [None, 5, "task", [], [["task_type", "t"]], {}, object(),
                                    {"payload": {}}])
def test_what_is_no_submission_at_all_is_refused_as_invalid(engine: Engine, fields: Any) -> None:
    [refusal] = engine.do(engine.operations.submit_all([fields]))
    assert isinstance(refusal, DtqError)
    assert refusal.code == "INVALID_TASK"
    assert engine.dump() == {}


def test_a_payload_of_one_byte_too_many_is_too_large_and_nothing_is_written(
        engine: Engine) -> None:
    engine = engine.with_settings(max_payload_bytes=10)
    with refused("PAYLOAD_TOO_LARGE", "payload has 11 bytes; at most 10"):
        engine.submit(payload={"a": "xxx"})
    assert engine.dump() == {}
    engine.submit(payload={"a": "xx"})


def test_what_is_at_its_limit_is_accepted_and_comes_back_as_it_was(engine: Engine) -> None:
    fields = {"payload": objects(MAX_LEVELS) | {"": "\x00\x7f\u2028\U0001f600", "n": [1e308, -0.0]},
              "metadata": {"a": "x" * 4060, "ttl_seconds": 0.001},
              "idempotency_key": "k:/ü" * 63, "task_type": "ü" * 200, "delay_ms": 1}
    task = engine.queue.get(engine.submit(**fields))
    assert task is not None
    assert {name: getattr(task, name) for name in fields if name != "delay_ms"} == {
        name: value for name, value in fields.items() if name != "delay_ms"}
    assert (task.available_at, task.expires_at) == (task.created_at + 1, task.created_at + 1)


def test_of_a_call_of_several_the_good_ones_are_accepted_and_each_is_answered_in_its_place(
        engine: Engine) -> None:
    answers = engine.do(engine.operations.submit_all([
        {"task_type": "t", "task_id": TASK_ID}, {}, {"task_type": "t", "payload": {"a": math.nan}},
        {"task_type": "t", "delay_ms": 60_000}]))
    assert answers[0] == Submitted(TASK_ID, "queued")
    assert [isinstance(each, DtqError) for each in answers] == [False, True, True, False]
    assert len(engine.tasks()) == 2
    assert engine.do(engine.operations.submit_all([])) == []


FIELDS = ("task_type", "payload", "task_id", "queue", "priority", "max_attempts", "timeout_ms",
          "delay_ms", "metadata", "idempotency_key", "ttl_seconds", "colour")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40)
    | st.text(st.characters(), max_size=5) | st.binary(max_size=5)
    | st.sampled_from([TASK_ID, "default", "\ud800", "\x00", 10 ** 400]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(FIELDS) | st.text(st.characters(), max_size=3), inner,
                      max_size=3),
    max_leaves=8)
SUBMISSIONS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5).map(
    lambda fields: {"task_type": "echo_task", **fields}) | VALUES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
          max_examples=50)
@given(submissions=st.lists(SUBMISSIONS, max_size=3))
def test_whatever_is_submitted_is_accepted_and_can_be_read_or_is_refused_by_its_code(
        engine: Engine, submissions: list[Any]) -> None:
    answers = engine.do(engine.operations.submit_all(submissions))
    assert len(answers) == len(submissions)
    for answer in answers:
        if isinstance(answer, DtqError):
            assert answer.code in ("INVALID_TASK", "PAYLOAD_TOO_LARGE", "IDEMPOTENCY_IN_PROGRESS")
            answer.message.encode()
        else:
            task = engine.queue.get(answer.task_id)
            assert task is not None
            assert task.task_id == answer.task_id


# Looks ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("task_id", NO_TASK_IDS)
def test_what_is_not_known_is_none_or_not_found(engine: Engine, task_id: str) -> None:
    assert engine.queue.get(task_id) is None
    with refused("TASK_NOT_FOUND"):
        engine.do(engine.operations.dead_letter(task_id))
    with refused("WORKER_NOT_FOUND"):
        engine.do(engine.operations.worker(task_id))
    with refused("QUEUE_NOT_FOUND"):
        engine.do(engine.operations.queue_stats(task_id))
    assert engine.dump() == {}


# KEY-18
def test_a_result_that_is_not_kept_any_more_is_said_to_be_expired(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.submit()
    before = engine.queue.get(task_id)
    engine.settle(worker, succeeded(engine.take_one(worker), b"null"))
    kept = engine.queue.get(task_id)
    assert engine.redis.delete(engine.keys.result_prefix + task_id) == 1
    expired = engine.queue.get(task_id)
    assert before and kept and expired
    assert [(each.result, each.result_expired) for each in (before, kept, expired)] == [
        (None, False), (None, False), (None, True)]


def test_a_success_after_a_failure_shows_no_error(engine: Engine) -> None:
    worker = engine.worker()
    task_id = engine.wait_for_retry()
    engine.make_due(task_id)
    engine.promote()
    engine.settle(worker, succeeded(engine.take_one(worker)))
    task = engine.queue.get(task_id)
    assert task is not None
    assert (task.status, task.error_class, task.error_message, task.retryable,
            task.retry_delay_ms) == ("succeeded", None, None, None, None)


def test_tasks_are_listed_newest_first_by_queue_and_status_and_page_by_page(
        engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtq_reference.operations.PAGE", 2)
    here = [engine.submit() for _ in range(5)]
    engine.submit(queue="mail")
    later = engine.submit(delay_ms=60_000)
    assert {task.task_id for task in engine.tasks(queue="default")} == {*here, later}
    assert [task.task_id for task in engine.tasks(status="pending")] == [later]
    assert len(engine.tasks(queue="default", status="queued", limit=3)) == 3
    assert engine.tasks(queue="nowhere") == engine.tasks(limit=0) == []
    created = [task.created_at for task in engine.tasks()]
    assert created == sorted(created, reverse=True)


def test_dead_letters_are_listed_newest_first_page_by_page_and_found_by_their_task(
        engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtq_reference.operations.PAGE", 2)
    orphan = engine.submit(payload={"who": "nobody"})
    engine.redis.delete(engine.keys.task_prefix + orphan)
    engine.take(engine.worker())
    buried = [orphan, *(engine.bury(metadata={"n": n}) for n in range(4))]
    assert engine.letters() == buried
    for limit in (0, 1, 2, 3, 5):
        assert [each.task_id for each in engine.dead_letters(limit)] == \
            buried[::-1][:limit]
    assert engine.do(engine.operations.dead_letter(buried[1])).metadata == {"n": 0}
    assert engine.do(engine.operations.dead_letter(orphan)).payload == {"who": "nobody"}


@pytest.mark.parametrize("fields", [
    {"payload": "not json"}, {"attempts_made": "many", "worker_id": "x", "payload": "{}"},
    {"payload": b"\xff", b"\xfe": b"\xff"},
    {"task_id": b"\xff\n", "metadata": "[", "attempt": "nan"}])
def test_letters_of_entries_that_somebody_else_wrote_can_be_listed(
        engine: Engine, fields: dict[Any, Any]) -> None:
    worker = engine.worker()
    engine.redis.xadd(engine.keys.stream("default", 5), fields)
    ear = engine.listen()
    engine.take(worker)
    (letter,) = engine.dead_letters()
    assert (letter.last_error_class, letter.attempts_made, letter.worker_id, letter.metadata) == (
        "OrphanEntry", 0, "w", {})
    assert ear.types() == ["TASK_DEAD_LETTERED"]


def test_a_task_whose_payload_was_spoilt_can_be_looked_at(engine: Engine) -> None:
    task_id = engine.submit()
    engine.redis.hset(engine.keys.task_prefix + task_id, "payload", "{spoilt")
    task = engine.queue.get(task_id)
    assert task is not None
    assert task.payload == "{spoilt"


def test_the_numbers_of_a_queue_are_those_of_its_unfinished_tasks(engine: Engine) -> None:
    engine.bury()
    engine.wait_for_retry()
    engine.submit(delay_ms=60_000)
    engine.released()
    engine.submit(priority=9)
    worker = engine.worker()
    engine.take_one(worker)
    engine.submit(queue="mail", delay_ms=60_000)
    stats = engine.queue_stats("default")
    assert (stats.queue, stats.depth, stats.pending, stats.paused, stats.retry_scheduled,
            stats.dlq_depth) == ("default", 4, 1, False, 2, 1)
    assert [(each.queue, each.depth) for each in engine.do(engine.operations.queues())] == [
        ("default", 4), ("mail", 1)]


def test_the_depth_of_the_schedule_has_a_field_for_each_queue_with_members_only(
        engine: Engine) -> None:
    def depths() -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = engine.redis.hgetall(engine.keys.schedule_depth)
        return found

    worker = engine.worker()
    first, second = engine.submit(delay_ms=60_000), engine.submit(delay_ms=60_000, queue="mail")
    retry = engine.wait_for_retry()
    assert depths() == {b"default": b"2", b"mail": b"1"}
    engine.make_due(first, retry)
    engine.promote()
    assert depths() == {b"mail": b"1"}
    engine.cancel(second)
    assert not engine.redis.exists(engine.keys.schedule_depth)
    engine.settle(worker, *(failed(taken) for taken in engine.take(worker).tasks))
    assert depths() == {b"default": b"2"}


# Workers ----------------------------------------------------------------------------------------

# KEY-19
def test_a_worker_is_shown_as_it_describes_itself(engine: Engine) -> None:
    first, second = engine.worker("b"), engine.worker("a")
    assert [each.worker_id for each in engine.do(engine.operations.workers())] == ["a", "b"]
    view = engine.worker_view("b")
    assert (view.incarnation, view.status, view.concurrency) == (first.incarnation, "ready", 4)
    engine.goodbye(second)
    assert [each.worker_id for each in engine.do(engine.operations.workers())] == ["b"]
    assert engine.worker_view("a").status == "stopped"


# WORK-14
@pytest.mark.parametrize(("silent_ms", "status", "active"), [(2_000, "ready", 1),
                                                             (60_000, "stale", 0)])
def test_a_worker_is_stale_after_three_heartbeats_without_one(
        engine: Engine, silent_ms: int, status: str, active: int) -> None:
    engine.worker()
    engine.redis.hset(engine.keys.worker_prefix + "w", mapping={
        "heartbeat_interval_s": "10", "last_heartbeat": engine.now_ms() - silent_ms})
    assert engine.worker_view("w").status == status
    assert engine.queue_stats("default").workers_active == active


# KEY-20
def test_an_administrative_action_says_who_asked_for_it_and_the_list_of_them_is_bounded(
        engine: Engine) -> None:
    for _ in range(3):
        engine.redis.xadd(engine.keys.audit, {"action": "old"})
    engine.do(engine.operations.pause("default", ACTOR))
    line = engine.audited()[-1]
    assert line.keys() == {"actor", "action", "task_id", "ts", "request_id"}
    assert abs(int(line["ts"]) - engine.now_ms()) < 60_000
