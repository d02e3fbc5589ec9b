"""Packing what a script is asked, and reading what it answers: no connection is needed."""

from __future__ import annotations

import msgspec
import pytest
from dtq_reference import calls, scripts
from dtq_reference.calls import Actor, Identity, Outcome, Taken
from dtq_reference.errors import DtqError
from dtq_reference.keys import Keys
from dtq_reference.settings import Settings
from dtq_reference.task import TaskRequest

KEYS, SETTINGS, IDENTITY = Keys("x:"), Settings(), Identity("w", "0000000a")
SIGNING, ACTOR = Settings(signing_key="secret"), Actor("cli:someone", "r1")
TAKEN = Taken(level=2, entry_id="1-0", attempt=3, task_id="a" * 32, task_type="t", payload=b"{}",
              max_attempts=5, timeout_ms=1000, queue="default", alone=False, created_at=9)


def test_packing_the_same_twice_gives_the_same_bytes() -> None:
    request = TaskRequest(task_type="t", payload={"b": 1, "a": 2}, timeout_ms=1)
    assert calls.submit(KEYS, SETTINGS, [request]) == calls.submit(KEYS, SETTINGS, [request])
    outcomes = [Outcome(TAKEN, 1), Outcome(TAKEN, 1, error_class="E")]
    assert calls.settle(KEYS, SETTINGS, IDENTITY, "default", outcomes) == calls.settle(
        KEYS, SETTINGS, IDENTITY, "default", outcomes)


def test_no_argument_is_of_the_binary_type_that_servers_cannot_unpack() -> None:
    request = TaskRequest(task_type="t", payload={"a": "ä"}, timeout_ms=1, idempotency_key="k")
    made = [calls.submit(KEYS, SIGNING, [request]),
            calls.settle(KEYS, SETTINGS, IDENTITY, "q", [Outcome(TAKEN, 1, b'"r"')]),
            calls.take(KEYS, SETTINGS, IDENTITY, "q", room=1, reap=True, in_hand=[TAKEN]),
            calls.renew(KEYS, SETTINGS, IDENTITY, "q", [TAKEN], {"status": "busy"}),
            calls.release(KEYS, SETTINGS, IDENTITY, "q", [TAKEN]),
            calls.promote(KEYS, SETTINGS, IDENTITY, ["q"]),
            calls.register(KEYS, SETTINGS, IDENTITY, "q", {"status": "ready"}, again=False),
            calls.goodbye(KEYS, SETTINGS, IDENTITY, "q"), calls.sweep(KEYS, SETTINGS, "q"),
            calls.cancel(KEYS, SETTINGS, ACTOR, "a" * 32, "x:s"),
            calls.requeue(KEYS, SETTINGS, ACTOR, "a" * 32, "x:s"),
            calls.discard(KEYS, SETTINGS, ACTOR), calls.forget_queue(KEYS, SETTINGS, "q"),
            calls.pause(KEYS, SETTINGS, ACTOR, "q", paused=True),
            calls.read(("GET", "x:a"), ("TIME",))]
    assert {call.script for call in made} == set(scripts.NAMES)

    def has_bytes(value: object) -> bool:
        if isinstance(value, dict):
            return any(map(has_bytes, [*value, *value.values()]))
        if isinstance(value, list):
            return any(map(has_bytes, value))
        return isinstance(value, bytes)

    assert not any(has_bytes(msgspec.msgpack.decode(call.argument)) for call in made)


def test_a_success_carries_its_result_and_a_failure_its_error() -> None:
    call = calls.settle(KEYS, SETTINGS, IDENTITY, "q", [
        Outcome(TAKEN, 7, b"[1]"), Outcome(TAKEN, 8, error_class="E", error_message="m",
                                           retryable=True, delay_ms=9)])
    fence = {"task_id": "a" * 32, "level": 2, "entry_id": "1-0", "attempt": 3}
    assert msgspec.msgpack.decode(call.argument)["outcomes"] == [
        {**fence, "duration_ms": 7, "result": "[1]"},
        {**fence, "duration_ms": 8, "error_class": "E", "error_message": "m", "retryable": True,
         "delay_ms": 9}]


def test_a_payload_that_is_not_json_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(DtqError, match="payload is not JSON"):
        calls.submit(KEYS, SETTINGS, [TaskRequest(task_type="t", payload={"a": object()})])


def test_answers_are_read() -> None:
    reply = calls.read_take([b"ours", [[2, b"1-0", 3, b"a" * 32, b"t", b"{}", 5, 1000, b"default",
                                        0, 9, b"k", b"s"]], 1, [b"1-0", b"2-0"],
                             [[b"default", b"t", b"expired"]]])
    taken = msgspec.structs.replace(TAKEN, idempotency_key="k", signature="s")
    assert reply == calls.TakeReply("ours", [taken], True, ["1-0", "2-0"],
                                    [[b"default", b"t", b"expired"]])
    assert calls.read_submit([[b"full", b"a", b"7"]]) == [("full", "a", "7")]
    assert calls.read_settle([b"succeeded", b"superseded"]) == ["succeeded", "superseded"]
    assert calls.read_renew([b"other", [2, 1, 0]]) == ("other", [2, 1, 0])
    assert calls.read_promote([1, 7, 0, 1, []]) == calls.PromoteReply(True, 7, False, True, [])
    assert calls.read_release([[1, 0], [[b"q", b"t", b"failed"]]]) == [[b"q", b"t", b"failed"]]


def test_a_hold_is_what_fences_an_attempt() -> None:
    assert TAKEN.hold == (2, "1-0", 3, "a" * 32)
    assert msgspec.structs.replace(TAKEN, attempt=4).hold != TAKEN.hold


def test_a_workers_hash_outlives_ten_heartbeats() -> None:
    settings = Settings(heartbeat_interval_s=0.2, visibility_timeout_s=1)
    call = calls.renew(KEYS, settings, IDENTITY, "q", [], {})
    assert msgspec.msgpack.decode(call.argument)["ttl_ms"] == 2000
