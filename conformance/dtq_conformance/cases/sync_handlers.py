"""Cases of synchronous handlers: beside awaited ones, past their time limit, asked to stop.

They submit `sync_probe_task`, which does a probe's steps as a synchronous handler. What is looked
at is an order of events, not how long something took.
"""

from __future__ import annotations

import contextlib

from dtq_conformance.bench import READY_LIMIT_S, Bench
from dtq_conformance.exchange import place
from dtq_conformance.front import Api, api_of, inspected, want
from dtq_conformance.history import Witness
from dtq_conformance.trial import LEASE_MS, Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for

SYNC = "sync_probe_task"
LIMIT_MS, OVERRUN_MS = 300, 1_500
LONG_MS = 6 * LEASE_MS
OUTLIVED = "it outlived its handler"
ROUNDS = 2
"""A worker shows that it is overdue for one lease: in so many tries it has to be seen once."""


def _handlers_of_both_kinds_work_side_by_side(bench: Bench) -> None:
    """While one blocks in a thread, another in a thread and some that are awaited begin and end."""
    bench.await_ready(bench.start_worker(3))
    blocks = bench.submit({"block": OVERRUN_MS}, {"return": "synchronous"}, task_type=SYNC,
                          label="blocks")
    bench.await_witness("start", label="blocks")
    awaited = bench.submit_many(3, {"sleep": 10}, {"return": "asynchronous"}, label="awaited")
    bench.submit({"block": 10}, task_type=SYNC, label="in another thread")
    bench.await_all_terminal()
    end_ns = min((line.at_ns for line in bench.witnessed("end", "blocks")), default=0)
    inspected(bench, "the witness file", ["what ended while a synchronous handler worked"], {
        label: any(line.at_ns < end_ns for line in bench.witnessed("end", label))
        for label in ("awaited", "in another thread")}, want(
            "WORK-09", "what other slots did while a synchronous handler blocked its own",
            holds={"awaited": True, "in another thread": True}))
    results = [view and view.result for view in map(bench.look, (blocks, awaited[0]))]
    inspected(bench, "the target", ["the results of both kinds"], {"results": results}, want(
        "HAND-02", "a synchronous handler and an asynchronous one",
        holds={"results": ["synchronous", "asynchronous"]}))


def _what_returns_too_late_changes_nothing(bench: Bench) -> None:
    """The attempt has ended long before its handler, which then returns as if nothing were."""
    bench.await_ready(bench.start_worker(2))
    late = bench.submit({"block": OVERRUN_MS}, {"return": "too late"}, task_type=SYNC,
                        timeout_ms=LIMIT_MS, max_attempts=1, label="late")
    bench.await_status(late, "dead_lettered", "failed", "succeeded")
    ended = _end(bench, "late")
    bench.await_quiet(2 * bench.timing.heartbeat_ms)
    view = bench.look(late)
    inspected(bench, "the target", ["a task whose handler returned too late"], {
        "returned": ended and ended.outcome, "status": view and view.status,
        "error_class": view and view.error_class, "result": view and view.result}, want(
            "WORK-06", "a task whose handler returned after its time limit",
            holds={"returned": "ok", "status": "dead_lettered", "error_class": "TimeoutError",
                   "result": None}))


def _a_synchronous_handler_runs_out(bench: Bench) -> None:
    """It is asked to stop at its first step, and has three more."""
    bench.await_ready(bench.start_worker(1))
    bench.submit(*[{"block": LEASE_MS / 2}] * 4, task_type=SYNC, label="is asked")
    bench.cancel(bench.await_witness("start", label="is asked").task_id)
    ended = _end(bench, "is asked")
    inspected(bench, "the witness file", ["the end of a synchronous handler"], {
        "outcome": ended and ended.outcome}, want(
            "CANCEL-04", "a synchronous handler whose task was cancelled",
            holds={"outcome": "ok"}))


def _a_worker_that_is_stuck_ends(bench: Bench) -> None:
    """Its only slot is held by a handler past its time limit; the next worker takes over."""
    said, ends = set[str](), list[int | str | None]()
    with api_of(bench) as api:
        while len(ends) < ROUNDS and "overdue" not in said:
            ends.append(_how_a_stuck_worker_ends(bench, api, said, label=str(len(ends))))
            bench.stop_workers()
    inspected(bench, "the workers", ["the ends of stuck workers"], {
        "ends": ends, "wrong": [each for each in ends if each in (0, OUTLIVED)],
        "said overdue": "overdue" in said}, want(
            "WORK-08", "a worker whose only slot was held by a handler past its time limit",
            holds={"said overdue": True, "wrong": []}))


def _how_a_stuck_worker_ends(bench: Bench, api: Api, said: set[str], *,
                             label: str) -> int | str | None:
    """Its exit code, or that its handler ended first. What it says meanwhile goes into `said`."""
    worker = bench.start_worker(1)
    bench.submit({"block": LONG_MS, "until_attempt": 1}, task_type=SYNC, timeout_ms=LIMIT_MS,
                 max_attempts=2, label=label)
    bench.await_witness("start", label=label)

    def is_over() -> bool:
        said.add(str(place(api.get(f"/workers/{worker.worker_id}").body, "status")))
        return not worker.process.alive or bool(bench.witnessed("end", label))

    with contextlib.suppress(WaitedTooLong):
        wait_for(is_over, reason=f"{worker.name} to end", every_s=0.1,
                 limit_s=LONG_MS / 1000 + READY_LIMIT_S)
    if worker.process.alive or bench.witnessed("end", label):
        return OUTLIVED
    worker.process.wait(READY_LIMIT_S)
    return worker.process.exit_code


def _end(bench: Bench, label: str) -> Witness | None:
    """The end of the handler with this label, if it comes."""
    with contextlib.suppress(WaitedTooLong):
        return bench.await_witness("end", label=label, limit_s=READY_LIMIT_S)
    return None


CASES = (
    Trial("conformance", "handlers_of_both_kinds_work_side_by_side",
          "A synchronous handler blocks its slot; awaited ones and another one work beside it.",
          ("HAND-02", "WORK-09", "DLV-01"), _handlers_of_both_kinds_work_side_by_side,
          needs=("handlers", "workers", "status")),
    Trial("conformance", "what_returns_too_late_changes_nothing",
          "A synchronous handler returns when its attempt has ended long ago.",
          ("WORK-06", "DLV-01"), _what_returns_too_late_changes_nothing,
          needs=("handlers", "workers", "status")),
    Trial("conformance", "a_synchronous_handler_runs_out",
          "A task is cancelled whose handler is a synchronous one.",
          ("CANCEL-04", "DLV-01"), _a_synchronous_handler_runs_out,
          needs=("handlers", "cancel")),
    Trial("conformance", "a_worker_that_is_stuck_ends",
          "A worker's only slot is held by a handler that has outrun its time limit.",
          ("WORK-08", "DLV-01"), _a_worker_that_is_stuck_ends,
          needs=("handlers", "workers", "http")),
)
