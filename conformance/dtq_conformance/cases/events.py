"""Cases of events: one for each transition, in order, on the channel and through the WebSocket."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from dtq_conformance.bench import READY_LIMIT_S, Bench, Worker
from dtq_conformance.checkers.one_event_per_transition import COPIED, LEADS
from dtq_conformance.front import Api, api_of, inspected, want
from dtq_conformance.history import Fault
from dtq_conformance.listening import on_the_channel, on_the_websocket, publish, websocket_of
from dtq_conformance.trial import LEASE_MS, Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for
from dtq_conformance.websocket import WebSocket

KEPT = 1_000
"""How many events are kept for a client that reads too slowly."""

PADDING = "x" * 12_000
FLOOD = 2_400
"""So many padded events are more than connections and the API keep, on any system."""

AT_ONCE = 100
SMALL_BUFFER_BYTES = 16_384
READ_LIMIT_S = 20.0


def _each_transition_is_announced(bench: Bench) -> None:
    """Tasks go every way that needs no fault, while somebody listens."""
    with on_the_channel(bench):
        delayed = bench.submit(delay_ms=LEASE_MS)
        bench.cancel(bench.submit(delay_ms=10 * LEASE_MS))
        bench.submit(delay_ms=LEASE_MS // 2, ttl_ms=LEASE_MS // 4)
        bench.submit_many(3)
        first, _ = bench.start_workers(2, 2)
        bench.submit({"fail": "retryable", "until_attempt": 2}, label="tried three times")
        dead = bench.submit({"fail": "permanent"})
        bench.await_all_terminal()
        bench.requeue(dead)
        bench.await_all_terminal([dead, delayed])
        for task_id in bench.submissions:
            bench.look(task_id)
        first.process.terminate()
        first.process.wait(READY_LIMIT_S)
        bench.await_quiet(1_500)


def _what_came_too_late_is_announced(bench: Bench) -> None:
    """A worker is stopped past its lease and goes on; an entry of a finished task comes again; a
    worker is killed and falls silent."""
    with on_the_channel(bench):
        for worker in bench.start_workers(3, 1):
            bench.await_ready(worker)
        task_ids = bench.submit_many(2, {"sleep": 300}, label="in hand")
        bench.await_witness("start", label="in hand", count=2)  # without it there is no story
        leader = wait_for(bench.keyspace.leader, limit_s=READY_LIMIT_S,
                          reason="a worker to lead the scheduling")
        inspected(bench, "harness", [LEADS, leader], {})
        held = {bench.worker_of(line.pid).name: line
                for line in bench.witnessed("start", "in hand")}
        name = next(each for each in held if each != leader)
        holder = bench.worker_of(held[name].pid)
        with _stopped(bench, holder.process):
            _await_witness(bench, "start")
            bench.await_all_terminal(task_ids)
        _await_witness(bench, "end")
        _await_empty_hands(bench, holder)
        _copy_entry(bench, held[name].task_id)
        holder.process.kill()
        bench.await_quiet(bench.timing.recovery_ms + 2_000)
        for task_id in task_ids:
            bench.look(task_id)


def _await_witness(bench: Bench, event: str) -> None:
    """Wait for the third execution of two tasks; where there is none, that is judged."""
    with contextlib.suppress(WaitedTooLong):
        bench.await_witness(event, label="in hand", count=3,
                            limit_s=bench.timing.recovery_ms / 1000)


def _await_empty_hands(bench: Bench, worker: Worker) -> None:
    """Wait for a heartbeat from now on that tells of nothing in hand: what the worker had, it has
    recorded. One that never does is judged all the same."""
    keys, name = bench.keyspace, worker.worker_id
    before_ms = keys.last_heartbeat_ms(name)
    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: keys.last_heartbeat_ms(name) not in (None, before_ms)
                 and keys.told_by(name)[0] == 0, limit_s=bench.timing.recovery_ms / 1000,
                 reason=f"{name} to have recorded what it had in hand")


@contextlib.contextmanager
def _stopped(bench: Bench, process: Any) -> Iterator[None]:
    """Within, a process stands still, and the history knows it."""
    def note(phase: Any) -> None:
        bench.records.append(Fault(at_ns=time.monotonic_ns(), fault="stop_worker", number=0,
                                   phase=phase, effect="stopped", pids=[process.pid]))

    note("begin")
    process.stop()
    note("bit")
    yield
    process.resume()
    note("end")


def _copy_entry(bench: Bench, task_id: str) -> None:
    """Add an entry of a task that is over, as an engine would that wrote one twice."""
    client, prefix = bench.keyspace.client, bench.keyspace.prefix
    fields = {
        "idempotency_key": "", "task_id": task_id, "queue": "default",
        "task_type": "probe_task", "attempt": "1",
        "max_attempts": "5", "priority": "5", "timeout_ms": "30000", "payload": "{}"}
    entry_id = client.xadd(f"{prefix}stream:default:p5", fields)
    inspected(bench, "harness", [COPIED, task_id], {"entry_id": str(entry_id)})


def _websockets_hear_what_is_published(bench: Bench) -> None:
    """Two clients and the channel hear the same."""
    bench.start_worker()
    with api_of(bench) as api, on_the_channel(bench), \
            on_the_websocket(bench, api, "client-1"), on_the_websocket(bench, api, "client-2"):
        bench.await_quiet(1_200)
        bench.submit_many(10)
        bench.submit({"fail": "retryable", "until_attempt": 1})
        bench.await_all_terminal()
        bench.await_quiet(1_200)


def _a_slow_client_is_told_of_each_end(bench: Bench) -> None:
    """Two clients that do not read, and more events than are kept for them."""
    with api_of(bench) as api:
        ends = [f"end-{number}" for number in range(20)]
        with contextlib.closing(_slow(api)) as slow, contextlib.closing(websocket_of(api)) as quick:
            _flood(bench, quick, [("TASK_STARTED", f"plain-{number}") for number in range(FLOOD)])
            _flood(bench, quick, [("TASK_SUCCEEDED", event_id) for event_id in ends])
            heard = _read_all(slow)
        plain = sum(each.startswith("plain-") for each in heard)
        inspected(bench, api.process.name, ["a client that did not read for a while"], {
            "kept": plain >= KEPT - len(ends), "dropped": plain < FLOOD,
            "ends missing": len(set(ends) - set(heard)), "plain": plain},
            want("BACK-05", "a flood of events to a client that does not read",
                 holds={"kept": True, "dropped": True}),
            want("BACK-06", "twenty ends after the flood", holds={"ends missing": 0}))
        with contextlib.closing(_slow(api)) as slow, contextlib.closing(websocket_of(api)) as quick:
            _flood(bench, quick, [("TASK_SUCCEEDED", f"over-{number}") for number in range(FLOOD)])
            heard = _read_all(slow)
            inspected(bench, api.process.name, ["a client that did not read"], {
                "heard": len(heard), "closed": slow.closed}, want(
                    "BACK-07", "a flood of ends to a client that does not read",
                    holds={"closed": 1013}))


def _slow(api: Api) -> WebSocket:
    return websocket_of(api, buffer_bytes=SMALL_BUFFER_BYTES)


def _flood(bench: Bench, quick: WebSocket, events: list[tuple[str, str]]) -> None:
    """Publish events, no faster than a client who reads can hear them."""
    for start in range(0, len(events), AT_ONCE):
        some = events[start:start + AT_ONCE]
        publish(bench, *({"event_id": event_id, "ts": 1, "type": type_, "task_id": "f" * 32,
                          "queue": "default", "task_type": "probe_task", "attempt": 1,
                          "worker_id": "", "metadata": {"padding": PADDING}}
                         for type_, event_id in some))
        _read_up_to(quick, some[-1][1])


def _read_up_to(quick: WebSocket, event_id: str) -> None:
    wait_for(lambda: f'"{event_id}"' in (quick.text(limit_s=1.0) or ""),
             reason="the events to reach a client who reads", limit_s=READ_LIMIT_S)


def _read_all(slow: WebSocket) -> list[str]:
    """The ids of all events that a client is still sent, until there are no more."""
    found = []
    while (text := slow.text(limit_s=3.0)) is not None:
        found.append(text[:200].partition('"event_id"')[2].split('"')[1])
    return found


CASES = (
    Trial("conformance", "each_transition_is_announced",
          "Tasks succeed, are tried again, give up, are cancelled, expire and are requeued, while "
          "somebody listens.",
          ("EVT-01", "EVT-02", "EVT-03", "EVT-04", "EVT-06", "DLV-01"),
          _each_transition_is_announced,
          needs=("events", "redis-schema", "cancel", "ttl", "dlq", "retry")),
    Trial("conformance", "what_came_too_late_is_announced",
          "A holder goes on after its lease was lost, an entry of a finished task comes again, and "
          "a worker falls silent.",
          ("EVT-02", "EVT-05", "EVT-06", "DLV-23"), _what_came_too_late_is_announced,
          needs=("events", "redis-schema")),
    Trial("conformance", "websockets_hear_what_is_published",
          "Two clients of the WebSocket hear what is published on the channel.",
          ("EVT-08",), _websockets_hear_what_is_published,
          needs=("events", "http", "redis-schema")),
    Trial("conformance", "a_slow_client_is_told_of_each_end",
          "Clients of the WebSocket that do not read, and more events than are kept for them.",
          ("BACK-05", "BACK-06", "BACK-07"), _a_slow_client_is_told_of_each_end,
          needs=("events", "http", "redis-schema")),
)
