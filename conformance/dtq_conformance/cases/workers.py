"""Cases of workers: who they are, when they look, how they end; seen by the harness itself."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time

import psutil

from dtq_conformance.bench import READY_LIMIT_S, Bench
from dtq_conformance.evidence import MS
from dtq_conformance.exchange import place
from dtq_conformance.front import api_of, inspected, want
from dtq_conformance.trial import LEASE_MS, Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for

STATUSES = {"starting", "ready", "busy", "overdue", "draining", "stopped", "stale"}
SEEN_MS, ROUNDS = 500, 3
"""How soon new work is seen; of so many tries on each level one has to be so quick, since the
machine may stand still in the others."""
DUE, DUE_AFTER_MS, LOOKS_EVERY_S = 150, 2_500, 3.0
LIMIT_MS, HANDLER_MS = 400, 4_000
REDELIVERED_MORE_MS = 1_000
"""Beyond the end of a lease and a reap interval."""


def _a_worker_is_who_it_says(bench: Bench) -> None:
    """One has a given id, one has none; both execute something, and are shown."""
    given, drawn = bench.start_worker(1), bench.start_worker(1, DTQ_WORKER_ID="")
    bench.submit_many(8, {"sleep": 300})
    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: {given.pid, drawn.pid} <= {line.pid for line in bench.witnessed("start")},
                 reason="both workers to execute something", limit_s=READY_LIMIT_S)
    names = {line.pid: line.worker_id for line in bench.witnessed("start")}
    inspected(bench, "the witness file", ["the ids of workers"], {
        "given": names.get(given.pid), "drawn": names.get(drawn.pid),
        "drawn at random": bool(re.fullmatch("worker-[0-9a-f]{8}", names.get(drawn.pid, "")))},
        want("WORK-01", "a worker with a given id, and one without",
             holds={"given": given.worker_id, "drawn at random": True}))
    bench.await_all_terminal()
    bench.await_quiet(2 * bench.timing.heartbeat_ms)  # a worker says what it does with each beat
    with api_of(bench) as api:
        shown = place(api.get("/workers").body, "workers")
        told = {str(each.get("status")) for each in shown} if isinstance(shown, list) else set()
        inspected(bench, "the API", ["the statuses of workers"], {
            "workers": len(told), "strange": sorted(told - STATUSES)},
            want("WORK-14", "the statuses of workers", holds={"strange": []}, has=["workers"]))


def _new_work_is_seen_at_once(bench: Bench) -> None:
    """An idle worker, and one task after the other on each level."""
    bench.await_ready(bench.start_worker(1))
    took_ms: dict[int, float] = {}
    for _ in range(ROUNDS):
        for level in range(10):
            task_id = bench.submit(priority=level)
            accepted_ns = time.monotonic_ns()
            bench.await_all_terminal([task_id])
            started = [line.at_ns for line in bench.witnessed("start") if line.task_id == task_id]
            spent_ms = (min(started, default=time.monotonic_ns()) - accepted_ns) / MS
            took_ms[level] = min(took_ms.get(level, spent_ms), spent_ms)
    inspected(bench, "the witness file", ["the quickest start on each level"], {
        "ms": took_ms, "late": [level for level, ms in took_ms.items() if ms > SEEN_MS]},
        want("WORK-04", "the quickest of three starts on each level", holds={"late": []}))


def _an_attempt_ends_at_its_limit(bench: Bench) -> None:
    """The handler would run for much longer than the attempt may."""
    bench.await_ready(bench.start_worker(1))
    task_id = bench.submit({"sleep": HANDLER_MS}, timeout_ms=LIMIT_MS, max_attempts=1)
    began_ns = bench.await_witness("start").at_ns
    bench.await_status(task_id, "dead_lettered", "failed", "succeeded")
    view = bench.look(task_id)
    inspected(bench, "the target", ["an attempt past its limit"], {
        "error_class": view and view.error_class,
        "before its handler would have ended":
            time.monotonic_ns() < began_ns + HANDLER_MS * MS},
        want("WORK-05", "an attempt whose handler runs for much longer than it may",
             holds={"error_class": "TimeoutError", "before its handler would have ended": True}))


def _a_heartbeat_ends_with_its_worker(bench: Bench) -> None:
    """Only the worker itself is killed, not what it has started."""
    worker = bench.start_worker(1)
    bench.await_ready(worker)
    own = worker.process.pids()
    worker.process.asked = "kill"
    os.kill(worker.pid, signal.SIGKILL)
    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: not any(map(_runs, own)), reason="its processes to be gone",
                 limit_s=READY_LIMIT_S)
    inspected(bench, worker.name, ["the processes of a killed worker"], {
        "processes": len(own), "left": [pid for pid in own if _runs(pid)]},
        want("WORK-13", "what a worker has started, after its SIGKILL", holds={"left": []}))


def _runs(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def _an_interrupt_is_a_request_to_stop(bench: Bench) -> None:
    """SIGINT, while a handler runs that ends within the drain limit."""
    worker = bench.start_worker(1)
    task_id = bench.submit({"sleep": 800}, label="finished")
    bench.await_witness("start", label="finished")
    worker.process.send(signal.SIGINT, asked="terminate")
    with contextlib.suppress(WaitedTooLong):
        worker.process.wait(bench.timing.drain_ms / 1000 + READY_LIMIT_S / 2)
    ended = [line.outcome for line in bench.witnessed("end", "finished")]
    view = bench.look(task_id)
    inspected(bench, worker.name, ["an interrupted worker"], {
        "exit_code": worker.process.exit_code if not worker.process.alive else "it still runs",
        "ends": ended, "status": view and view.status},
        want("STOP-05", "a worker that was sent SIGINT while a handler ran",
             holds={"exit_code": 0, "ends": ["ok"], "status": "succeeded"}))


def _a_second_signal_ends_at_once(bench: Bench) -> None:
    """The handler would end within the drain limit; the second signal does not wait for it."""
    worker = bench.start_worker(1)
    task_id = bench.submit({"sleep": 2_500, "until_attempt": 1}, label="left")
    bench.await_witness("start", label="left")
    worker.process.terminate()
    bench.await_quiet(300)
    worker.process.send(signal.SIGTERM, asked="kill")
    with contextlib.suppress(WaitedTooLong):
        worker.process.wait(bench.timing.drain_ms / 1000 + READY_LIMIT_S / 2)
    ends = [line.outcome for line in bench.witnessed("end", "left")]
    bench.start_worker(1)
    bench.await_all_terminal([task_id])
    inspected(bench, worker.name, ["a second signal"], {
        "ends before it was gone": [each for each in ends if each == "ok"],
        "executions": len(bench.witnessed("start", "left"))},
        want("STOP-06", "a worker that was sent a second SIGTERM while a handler ran",
             holds={"ends before it was gone": [], "executions": 2}))


def _more_than_a_hundred_fall_due(bench: Bench) -> None:
    """The scheduler looks so seldom that all of them are due when it does."""
    bench.await_ready(bench.start_worker(4))
    bench.pause()
    for _ in range(ROUNDS):
        bench.submit_many(DUE, delay_ms=DUE_AFTER_MS)
        with contextlib.suppress(WaitedTooLong):
            wait_for(lambda: max(bench.keyspace.scheduled().values(), default=0) <= 0,
                     reason="all to be due", limit_s=READY_LIMIT_S)
        if len(bench.keyspace.scheduled()) == DUE:
            break
    left = [len(bench.keyspace.scheduled())]
    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: len(bench.keyspace.scheduled()) < left[0], reason="a promotion",
                 limit_s=READY_LIMIT_S)
        began = time.monotonic()
        wait_for(lambda: not bench.keyspace.scheduled(), reason="all to be promoted",
                 limit_s=READY_LIMIT_S)
        if left[0] == DUE:
            inspected(bench, "the broker", ["so many that were due at once"], {
                "due": DUE, "without a pause": time.monotonic() - began < LOOKS_EVERY_S / 2},
                want("SCHED-04", f"the promotion of {DUE} tasks that were due at once",
                     holds={"without a pause": True}))
    bench.resume()


def _an_ended_lease_is_taken_in_time(bench: Bench) -> None:
    """A worker that holds a task is killed; another one has room all the while."""
    timing, took_ms = bench.timing, list[float]()
    bench.await_ready(bench.start_worker(1))
    for label in map(str, range(ROUNDS)):
        first = bench.submit({"sleep": 60_000, "until_attempt": 1}, label=label)
        holder = bench.worker_of(bench.await_witness("start", label=label).pid)
        bench.await_ready(bench.start_worker(1))
        killed_ns = time.monotonic_ns()
        holder.process.kill()
        bench.await_all_terminal([first])
        took_ms += [(line.at_ns - killed_ns) / MS for line in bench.witnessed("start", label)[1:]]
    limit_ms = timing.lease_ms + timing.reap_ms + REDELIVERED_MORE_MS
    inspected(bench, "the witness file", ["how soon killed workers' tasks began again"], {
        "ms": took_ms, "limit_ms": limit_ms, "in time": min(took_ms, default=9e9) <= limit_ms},
        want("DLV-32", "the quickest of three redeliveries", holds={"in time": True}))


def _what_was_released_is_taken_in_time(bench: Bench) -> None:
    """The first handler blocks its worker, so that it has taken the second task and not begun it
    when it is asked to stop; another worker has room."""
    bench.submit({"block": 2_000}, label="blocks")
    given_back = bench.submit({"sleep": 10}, label="given back")
    stopping = bench.start_worker(4)
    bench.await_witness("start", label="blocks")
    bench.await_ready(bench.start_worker(1))
    begun = bool(bench.witnessed("start", "given back"))
    stopping.process.terminate()
    stopping.process.wait(bench.timing.drain_ms / 1000 + READY_LIMIT_S)
    bench.await_all_terminal([given_back])
    line = bench.await_witness("start", label="given back")
    late_ms = (line.at_ns - (stopping.process.exit_ns or 0)) / MS
    if not begun and line.pid != stopping.pid and line.attempt == 1:  # else it was not released
        inspected(bench, "the witness file", ["how soon a released task began"], {
            "after its worker was gone, ms": late_ms,
            "in time": late_ms <= bench.timing.reap_ms + SEEN_MS},
            want("STOP-08", "a released task, where another worker had room",
                 holds={"in time": True}))


CASES = (
    Trial("conformance", "a_worker_is_who_it_says",
          "A worker with a given id, one without, and what both say of themselves.",
          ("WORK-01", "WORK-14", "DLV-01"), _a_worker_is_who_it_says, needs=("workers", "http")),
    Trial("conformance", "new_work_is_seen_at_once",
          "One task after the other for an idle worker, on each level.",
          ("WORK-04", "DLV-01"), _new_work_is_seen_at_once, needs=("workers", "status")),
    Trial("conformance", "an_attempt_ends_at_its_limit",
          "A handler that would run for much longer than its attempt may.",
          ("WORK-05", "DLV-01"), _an_attempt_ends_at_its_limit, needs=("workers", "status")),
    Trial("conformance", "a_heartbeat_ends_with_its_worker",
          "A worker is killed, and nothing that it has started.",
          ("WORK-13",), _a_heartbeat_ends_with_its_worker, needs=("workers",)),
    Trial("conformance", "an_interrupt_is_a_request_to_stop",
          "A worker is sent SIGINT while a handler runs.",
          ("STOP-01", "STOP-05", "DLV-01"), _an_interrupt_is_a_request_to_stop,
          needs=("shutdown", "status")),
    Trial("conformance", "a_second_signal_ends_at_once",
          "A worker is sent SIGTERM twice while a handler runs.",
          ("STOP-06", "DLV-01", "DLV-03"), _a_second_signal_ends_at_once,
          needs=("shutdown", "status")),
    Trial("conformance", "an_ended_lease_is_taken_in_time",
          "A worker that holds a task is killed, three times, and another one has room.",
          ("DLV-01", "DLV-03", "DLV-32"), _an_ended_lease_is_taken_in_time),
    Trial("conformance", "what_was_released_is_taken_in_time",
          "A worker is asked to stop that has taken a task and not begun it.",
          ("STOP-01", "STOP-08", "DLV-01"), _what_was_released_is_taken_in_time,
          needs=("shutdown",)),
    Trial("conformance", "more_than_a_hundred_fall_due",
          "More tasks than one promotion takes are due at once, in a pause.",
          ("SCHED-04", "DLV-01"), _more_than_a_hundred_fall_due,
          needs=("schedule", "pause", "redis-schema"), recovery_more_ms=2 * LEASE_MS,
          settings={"DTQ_SCHEDULER_INTERVAL_S": str(LOOKS_EVERY_S)}),
)
