"""Cases of delivery: everything runs, once, and a long handler keeps its task."""

from __future__ import annotations

import contextlib

from dtq_conformance.bench import READY_LIMIT_S, Bench
from dtq_conformance.front import inspected, want
from dtq_conformance.keyspace import GROUP
from dtq_conformance.trial import LEASE_MS, Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for

STREAM = "stream:default:p5"


def _everything_runs_once(bench: Bench) -> None:
    bench.start_workers(2)
    for number in range(20):
        bench.submit({"sleep": 20}, priority=number % 10)


def _a_long_handler_keeps_its_task(bench: Bench) -> None:
    bench.start_workers(2, 2)
    bench.submit_many(3, {"sleep": round(2.5 * LEASE_MS)}, label="long")


def _a_blocking_handler_keeps_its_task(bench: Bench) -> None:
    bench.start_workers(2, 1)
    bench.submit({"block": round(1.8 * LEASE_MS)}, label="blocks the event loop")
    bench.submit({"busy": round(1.8 * LEASE_MS)}, label="holds the interpreter's lock")


def _a_killed_holder_is_replaced(bench: Bench) -> None:
    first = bench.start_worker()
    bench.submit_many(3, {"sleep": 300}, label="held")
    bench.await_witness("start", label="held", count=3)
    first.process.kill()
    bench.start_worker()


def _entries_of_finished_tasks_lead_nowhere(bench: Bench) -> None:
    """The harness adds a copy of the entry of tasks with ends of every sort, twice: one that waits,
    and one that is pending with somebody who is gone. The only worker executes one at a time, so
    that what it took before the last task it has started before that."""
    client, stream = bench.keyspace.client, bench.keyspace.prefix + STREAM
    ids = {"succeeded": bench.submit(), "dead-lettered": bench.submit({"fail": "permanent"}),
           "cancelled": bench.submit(), "expired": bench.submit(ttl_ms=1)}
    entries = {fields[b"task_id"].decode(): fields for _, fields in client.xrange(stream)}
    bench.cancel(ids["cancelled"])
    bench.start_worker(1)
    bench.await_all_terminal()
    began = len(bench.witnessed("start"))
    for fields in entries.values():
        client.xadd(stream, fields)
        with client.pipeline(transaction=True) as step:
            step.xadd(stream, fields)
            step.xreadgroup(GROUP, "gone.00000000", {stream: ">"}, count=1)
            step.execute()
    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: not client.xlen(stream), reason="the copies to be put away",
                 limit_s=READY_LIMIT_S)
    left = {name: bench.keyspace.entries_of(task_id) for name, task_id in ids.items()}
    bench.await_all_terminal([bench.submit(label="the last one")])
    begun = [line.task_id for line in bench.witnessed("start")[began:]]
    for name, task_id in ids.items():
        inspected(bench, "the broker", [f"two entries of a task that was {name} before"], {
            "task_id": task_id, "copied": task_id in entries, "left": left[name],
            "executions": begun.count(task_id)},
            want("DLV-21", "what became of entries of a task that had ended",
                 holds={"copied": True, "left": 0, "executions": 0}))


CASES = (
    Trial("conformance", "everything_runs_once",
          "Twenty short tasks on two workers that nothing befalls.",
          ("STATE-01", "STATE-02", "STATE-03", "DLV-01", "DLV-02", "DLV-09", "RETRY-01",
           "RETRY-02", "STOP-01"), _everything_runs_once),
    Trial("conformance", "a_long_handler_keeps_its_task",
          "Handlers that run for two and a half leases, with an idle worker beside them.",
          ("DLV-06", "DLV-01"), _a_long_handler_keeps_its_task),
    Trial("conformance", "a_blocking_handler_keeps_its_task",
          "Handlers that hold up their process for longer than a lease, with an idle worker beside "
          "them.",
          ("DLV-06", "DLV-01"), _a_blocking_handler_keeps_its_task),
    Trial("conformance", "a_killed_holder_is_replaced",
          "A worker with three tasks in hand is killed; another one executes them.",
          ("DLV-03", "DLV-05", "DLV-07", "RETRY-02"), _a_killed_holder_is_replaced),
    Trial("conformance", "entries_of_finished_tasks_lead_nowhere",
          "Entries of tasks that have ended stand in the stream again, new ones and pending ones.",
          ("DLV-21", "DLV-01"), _entries_of_finished_tasks_lead_nowhere,
          needs=("redis-schema", "cancel", "ttl", "dlq")),
)
