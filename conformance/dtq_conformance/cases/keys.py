"""Cases of what stands in the keys: fields, names, expiries, records; read by the harness itself.

Each reading is recorded as an inspection, with what the contract says of it.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from dtq_conformance.bench import READY_LIMIT_S, Bench, Worker
from dtq_conformance.exchange import Expected, is_absent, place
from dtq_conformance.front import api_of, inspected, want
from dtq_conformance.operation import Operation
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for

ENTRY = {"task_id", "queue", "task_type", "payload", "attempt", "max_attempts", "priority",
         "timeout_ms", "idempotency_key"}
LETTER = {*ENTRY, "failed_at_ms", "attempts_made", "last_error", "last_error_class", "retryable",
          "worker_id", "original_queue", "metadata", "created_at", "available_at"}
WORKER = {"worker_id", "incarnation", "hostname", "started_at", "last_heartbeat", "active_tasks",
          "concurrency", "tasks_processed", "tasks_failed", "tasks_retried", "status"}

TASK_S, RESULT_S, KEY_S = 1_000, 500, 700
"""For how long a finished task, its result and its key are kept: all different."""
LATE_MS = 1_500
"""An expiry is a whole number of seconds, and is read a little later."""
HEARTBEATS, LOCK_MS = 10, 10_000
AUDITED, AUDITED_AND_FEW_MORE = 10_000, 10_500


def _see(bench: Bench, about: str, seen: dict[str, Any], *expects: Expected) -> None:
    inspected(bench, "the broker", [about], seen, *expects)


def _streams(bench: Bench) -> list[str]:
    return [f"{bench.keyspace.prefix}stream:default:p{level}" for level in range(10)]


def _record(bench: Bench, task_id: str) -> dict[str, str]:
    found = bench.keyspace.client.hgetall(f"{bench.keyspace.prefix}task:{task_id}")
    return {name.decode(): value.decode(errors="replace") for name, value in found.items()}


def _key(bench: Bench, name: str) -> dict[str, Any]:
    """The state of an idempotency record, and whether it expires."""
    key = f"{bench.keyspace.prefix}idempotency:default:{name}"
    found = json.loads(bench.keyspace.client.get(key) or b"{}")
    return {"state": found.get("state"), "expires": bench.keyspace.client.pttl(key) >= 0}


def _entries_have_their_fields(bench: Bench) -> None:
    """Entries that wait, a dead letter, and a cancelled task's entry and member."""
    client = bench.keyspace.client
    waiting = bench.submit(priority=3)
    entries = [fields for stream in _streams(bench) for _, fields in client.xrange(stream)]
    _see(bench, "entries of levels", {
        "missing": sorted(ENTRY - {name.decode() for name in entries[0]}) if entries else "all"},
        want("KEY-14", "an entry that waits", holds={"missing": []}))
    later = bench.submit(delay_ms=600_000)
    for task_id in (waiting, later):
        bench.cancel(task_id)
        _see(bench, f"what leads to the cancelled task {task_id}", {
            "entries": bench.keyspace.entries_of(task_id),
            "members": int(task_id in bench.keyspace.scheduled())},
            want("CANCEL-02", "what leads to a cancelled task", holds={"entries": 0, "members": 0}))
    bench.start_worker()
    bench.await_all_terminal([bench.submit({"fail": "permanent"}, label="dead")])
    letters = client.xrange(f"{bench.keyspace.prefix}stream:dead-letter")
    _see(bench, "dead letters", {
        "missing": sorted(LETTER - {name.decode() for name in letters[0][1]}) if letters
        else "all"}, want("KEY-15", "a dead letter", holds={"missing": []}))
    if bench.lab.broker.owned:
        foreign = [key.decode() for key in client.scan_iter(count=1000)
                   if not key.startswith(bench.keyspace.prefix.encode())]
        _see(bench, "keys without the prefix", {"foreign": foreign[:5]},
             want("KEY-08", "all keys of the server", holds={"foreign": []}))


def _who_holds_what(bench: Bench) -> None:
    """While one task runs and one waits: who holds it, who leads, what a worker says of itself."""
    worker = bench.start_worker(1)
    held = bench.submit({"sleep": 1_500}, label="held")
    bench.await_witness("start", label="held")
    bench.submit({"sleep": 10})
    names = [name for stream in _streams(bench) for name in _holders(bench, stream)]
    _see(bench, "who holds the entry of the running task", {
        "status": _record(bench, held).get("status"), "holders": len(names),
        "named as promised": [bool(re.fullmatch(rf"{worker.worker_id}\.[0-9a-f]{{8}}", name))
                              for name in names], "names": names},
        want("STATE-05", "the entry of a running task beside one that waits",
             holds={"status": "running", "holders": 1}),
        want("KEY-11", "the name under which a process reads",
             holds={"named as promised": [True]}))
    _see_worker(bench, worker)
    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: bench.keyspace.leader() is not None, reason="a leader",
                 limit_s=READY_LIMIT_S)
    _see(bench, "the lock of the scheduler", {
        "leader": bench.keyspace.leader(),
        "lives for a time": 0 < bench.keyspace.lock_left_ms() <= LOCK_MS},
        want("SCHED-03", "the lock of the scheduler",
             holds={"leader": worker.worker_id, "lives for a time": True}))
    gone = f"{worker.worker_id}.{bench.keyspace.process_of(worker.worker_id)[0][-8:]}"
    bench.await_all_terminal()
    bench.start_worker(1)
    worker.process.kill()
    worker.process.wait(READY_LIMIT_S)
    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: not bench.keyspace.has_consumer(gone), reason="a consumer to be gone",
                 limit_s=READY_LIMIT_S)
    _see(bench, "the consumer of a worker that is gone", {
        "stays": bench.keyspace.has_consumer(gone)},
        want("KEY-13", "a worker that is gone with nothing pending", holds={"stays": False}))


def _holders(bench: Bench, stream: str) -> list[str]:
    client = bench.keyspace.client
    if not client.exists(stream):
        return []
    return [pending["consumer"].decode()
            for pending in client.xpending_range(stream, "workers", "-", "+", 100)]


def _see_worker(bench: Bench, worker: Worker) -> None:
    client, key = bench.keyspace.client, f"{bench.keyspace.prefix}worker:{worker.worker_id}"
    left_ms = client.pttl(key)
    names = {name.decode() for name in client.hgetall(key)}
    beat_ms = bench.timing.heartbeat_ms
    _see(bench, f"the record of {worker.name}", {
        "missing": sorted(WORKER - names), "left_ms": left_ms,
        "lives for ten heartbeats": 0 < left_ms <= HEARTBEATS * beat_ms},
        want("KEY-19", "the record of a worker",
             holds={"missing": [], "lives for ten heartbeats": True}))


def _keys_follow_their_tasks(bench: Bench) -> None:
    """A key of each end: what its record says, and how long that, its task and its result live."""
    bench.start_worker()
    ids = {name: bench.submit(*steps, idempotency_key=name) for name, steps in (
        ("completed", [{"sleep": 10}]), ("failed", [{"sleep": 1_000}, {"fail": "permanent"}]),
        ("retrying", [{"fail": "retryable", "until_attempt": 1}]))}
    bench.await_status(ids["retrying"], "retrying")
    processing = want("IDEM-08", "the key of a retrying task",
                      holds={"state": "processing", "expires": False})
    _see(bench, "the key of a retrying task", _key(bench, "retrying"), processing,
         _of(processing, "IDEM-13"))
    ids["cancelled"] = bench.submit(delay_ms=600_000, idempotency_key="cancelled")
    bench.cancel(ids["cancelled"])
    ids["expired"] = bench.submit(delay_ms=200, ttl_ms=100, idempotency_key="expired")
    bench.await_all_terminal()
    for name in ids:
        state = "completed" if name in ("completed", "retrying") else "failed"
        _see(bench, f"the key of a task that was {name}", _key(bench, name), want(
            "IDEM-08", f"the key of the task that was meant to be {name}",
            holds={"state": state, "expires": True}))
    _see_expiries(bench, ids)
    bench.requeue(ids["failed"])
    seen = _key(bench, "failed")
    if _record(bench, ids["failed"]).get("status") in ("queued", "running"):  # it was, then
        _see(bench, "the key of a requeued task", seen, want(
            "IDEM-14", "the key of a requeued task, while that is unfinished",
            holds={"state": "processing", "expires": False}))
    bench.await_all_terminal()


def _of(expected: Expected, clause: str) -> Expected:
    """The same expectation of another clause."""
    return want(clause, expected.told, holds=expected.holds)


def _see_expiries(bench: Bench, ids: dict[str, str]) -> None:
    """By the server's own clock, as one reads it beside each key."""
    client, prefix = bench.keyspace.client, bench.keyspace.prefix
    off: dict[str, float] = {}
    for name, task_id in ids.items():
        record = _record(bench, task_id)
        kept = {f"idempotency:default:{name}": KEY_S}
        if record.get("status") != "dead_lettered":
            kept[f"task:{task_id}"] = TASK_S
        if record.get("status") == "succeeded":
            kept[f"result:{task_id}"] = RESULT_S
        for key, kept_s in kept.items():
            seconds, micros = client.time()
            age_ms = seconds * 1000 + micros / 1000 - float(record.get("finished_at") or 0)
            off_ms = client.pttl(prefix + key) - (kept_s * 1000 - age_ms)
            if abs(off_ms) > LATE_MS:
                off[key] = round(off_ms)
    _see(bench, "expiries of finished tasks, their results and their keys", {"off by ms": off},
         want("KEY-17", "how long what is finished is kept", holds={"off by ms": {}}))


def _an_empty_queue_is_purged(bench: Bench) -> None:
    """The harness fills the audit; a queue whose work is done is purged, and its workers gone."""
    client, prefix = bench.keyspace.client, bench.keyspace.prefix
    bench.start_worker()
    bench.submit_many(3, {"sleep": 10})
    bench.await_all_terminal()
    bench.stop_workers()
    with client.pipeline(transaction=False) as pipe:
        for number in range(AUDITED + 2_000):
            pipe.xadd(f"{prefix}stream:audit", {"actor": "nobody", "action": "cancel",
                                                "task_id": "", "ts": number, "request_id": ""})
        pipe.execute()
    bench.cancel(bench.submit(delay_ms=600_000))
    bench.purge()
    left = client.xlen(f"{prefix}stream:audit")
    _see(bench, "the audit of many actions", {
        "entries": left, "bounded": AUDITED <= left <= AUDITED_AND_FEW_MORE},
        want("KEY-20", "the length of the audit", holds={"bounded": True}))
    _see(bench, "what is left of a purged queue", {
        "named": bool(client.sismember(f"{prefix}queues", "default")),
        "streams": sum(map(client.exists, _streams(bench)))},
        want("KEY-16", "a purged queue that has nothing left",
             holds={"named": False, "streams": 0}))


def _a_requeue_clears_a_request(bench: Bench) -> None:
    """The harness itself writes the request into the record of a dead letter, since no task that
    was asked to stop dies of anything else. Where the target does not show it, or does not do the
    requeue, nothing is judged.
    """
    bench.start_worker()
    task_id = bench.submit({"fail": "permanent"}, label="asked to stop")
    bench.await_all_terminal()
    client, key = bench.keyspace.client, f"{bench.keyspace.prefix}task:{task_id}"
    client.hset(key, "cancel_requested", client.hget(key, "finished_at") or b"1")
    with api_of(bench) as api:
        is_shown = _is_called_off(api.get(f"/tasks/{task_id}").body)
        bench.requeue(task_id)
        is_done = any(isinstance(each, Operation) and each.name == "requeue"
                      and each.outcome == "ok" for each in bench.records)
        bench.await_all_terminal()
        again = api.get(f"/tasks/{task_id}").body
    expected = want("CANCEL-07", "a requeue of a dead letter with a request to cancel", holds={
        "status": "dead_lettered", "asked to stop": False, "executions": 2})
    _see(bench, f"the new life of task {task_id}", {
        "status": place(again, "status"), "asked to stop": _is_called_off(again),
        "executions": len(bench.witnessed("start", "asked to stop"))},
        *[expected] * (is_shown and is_done))


def _is_called_off(body: Any) -> bool:
    """Whether a task shows that it was asked to stop."""
    return not is_absent(body, "cancel_requested") and bool(place(body, "cancel_requested"))


def _a_retry_keeps_its_place(bench: Bench) -> None:
    """The queue is paused while the retry waits, so that nobody takes it from where it is put."""
    bench.start_worker(1)
    task_id = bench.submit({"fail": "retryable", "until_attempt": 1}, priority=7)
    bench.await_status(task_id, "retrying")
    bench.pause()
    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: task_id not in bench.keyspace.scheduled(), reason="the promotion",
                 limit_s=READY_LIMIT_S)
    where = [stream.rpartition(":")[2] for stream in _streams(bench)
             for _, fields in bench.keyspace.client.xrange(stream)
             if fields[b"task_id"].decode() == task_id]
    _see(bench, "the entry of a promoted retry", {"levels": where}, want(
        "RETRY-11", "the level of a promoted retry", holds={"levels": ["p7"]}))
    bench.resume()


CASES = (
    Trial("conformance", "entries_have_their_fields",
          "An entry that waits, a dead letter, and what leads to cancelled tasks.",
          ("KEY-08", "KEY-14", "KEY-15", "CANCEL-02"), _entries_have_their_fields,
          needs=("redis-schema", "cancel", "dlq")),
    Trial("conformance", "who_holds_what_is_told",
          "Who holds a running task, who leads the scheduling, and what becomes of their names.",
          ("STATE-05", "KEY-11", "KEY-13", "KEY-19", "SCHED-03", "DLV-01"), _who_holds_what,
          needs=("redis-schema",)),
    Trial("conformance", "keys_follow_their_tasks",
          "Idempotency keys of tasks with ends of every sort, and how long all that is kept.",
          ("IDEM-08", "IDEM-13", "IDEM-14", "KEY-17", "DLV-13"), _keys_follow_their_tasks,
          needs=("redis-schema", "idempotency", "cancel", "ttl", "dlq"), snapshots=True,
          base_delay_ms=1_000, max_delay_ms=1_000, key_ms=KEY_S * 1_000,
          settings={"DTQ_TASK_RETENTION_S": str(TASK_S), "DTQ_RESULT_RETENTION_S": str(RESULT_S)}),
    Trial("conformance", "a_requeue_clears_a_request",
          "A dead letter is requeued whose task's record tells of a request to cancel.",
          ("CANCEL-07", "DLV-01"), _a_requeue_clears_a_request,
          needs=("redis-schema", "http", "dlq", "cancel")),
    Trial("conformance", "a_retry_keeps_its_place",
          "A task of level 7 fails, and its retry is promoted in a pause.",
          ("RETRY-11", "DLV-01"), _a_retry_keeps_its_place,
          needs=("redis-schema", "retry", "pause"), base_delay_ms=1_000, max_delay_ms=1_000),
    Trial("conformance", "an_empty_queue_is_purged",
          "A queue that has nothing left is purged, after more actions than the audit keeps.",
          ("KEY-16", "KEY-20"), _an_empty_queue_is_purged, needs=("redis-schema", "cancel")),
)
