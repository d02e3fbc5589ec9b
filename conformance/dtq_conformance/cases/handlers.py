"""Cases of handlers: the demonstration tasks, what the probe does, what becomes of results."""

from __future__ import annotations

import json
from typing import Any

from dtq_conformance.bench import Bench
from dtq_conformance.evidence import MS
from dtq_conformance.exchange import place
from dtq_conformance.front import Api, api_of, inspected, want
from dtq_conformance.target import TERMINAL
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for

RESULT_BYTES = 8_192
SLEPT_MS = 300
RESULT_S, ANSWER_LIMIT_S = 1, 20.0


def _the_probe_does_what_it_is_told(bench: Bench) -> None:
    """Steps whose order shows, a task without a return step, and a long result."""
    bench.start_worker(4)
    slept = bench.submit({"sleep": SLEPT_MS}, {"fail": "permanent"}, label="sleeps, then fails")
    returned = bench.submit({"return": 7}, {"fail": "permanent"}, label="returns before it fails")
    plain = bench.submit({"sleep": 10}, label="plain")
    long = bench.submit({"return_bytes": 3 * RESULT_BYTES})
    bench.await_all_terminal()
    first, last = (next((line for line in bench.witnessed(event, "sleeps, then fails")), None)
                   for event in ("start", "end"))
    seen = bench.look(returned)
    inspected(bench, "the witness file", ["steps in their order"], {
        "slept before it failed": bool(
            first and last and last.outcome == "failed"
            and last.at_ns - first.at_ns >= SLEPT_MS * MS), "task": slept,
        "returned": seen and seen.result}, want(
            "DEMO-02", "steps that wait before they fail, and return before they fail",
            holds={"slept before it failed": True, "returned": 7}))
    view = bench.look(plain)
    line = bench.await_witness("end", label="plain")
    inspected(bench, "the target", ["a result without a return step"], {
        "result": view and view.result}, want(
            "DEMO-03", "a result without a return step", holds={"result": {
                "attempt": line.attempt, "worker_id": line.worker_id, "pid": line.pid}}))
    cut = bench.look(long)
    result = cut.result if cut else None
    inspected(bench, "the target", ["a result that is too long"], {
        "truncated": result.get("truncated") if isinstance(result, dict) else None,
        "fits": len(json.dumps(result, separators=(",", ":")).encode()) <= RESULT_BYTES},
        want("HAND-05", "a result that is too long", holds={"truncated": True, "fits": True}))


def _each_line_is_whole(bench: Bench) -> None:
    """Many handlers write at once, with long labels, and one of their workers is killed."""
    victim, _ = bench.start_workers(2, 8)
    bench.submit_many(150, {"sleep": 5}, label="x" * 3_000)
    bench.await_witness("start", count=30)
    victim.process.kill()
    bench.await_all_terminal()
    lines = bench.lab.witness.read_bytes().split(b"\n")
    inspected(bench, "the witness file", ["its lines"], {
        "lines": len(lines) - 1, "torn or mixed": sum(not _is_whole(each) for each in lines[:-1]),
        "rest": len(lines[-1])}, want("DEMO-05", "the lines of many handlers that write at once",
                                      holds={"torn or mixed": 0, "rest": 0}))


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _the_demonstration_tasks_exist(bench: Bench) -> None:
    """They are asked for by their names, as a stranger would; results are kept for a second."""
    bench.start_worker(8)
    with api_of(bench) as api:
        echoed = _done(api, "echo_task", {"say": ["it", 1]})
        inspected(bench, "the API", ["echo_task"], _of(echoed, "status", "result"), want(
            "DEMO-01", "echo_task", holds={"status": "succeeded", "result": {"say": ["it", 1]}}))
        for name, status in (("fibonacci_task", "succeeded"), ("counter_task", "succeeded"),
                             ("flaky_task", "succeeded"), ("always_fail_task", "dead_lettered")):
            done = _done(api, name, {})
            inspected(bench, "the API", [name], _of(done, "status"), want(
                "DEMO-01", name, holds={"status": status}))
        bench.await_quiet(RESULT_S * 1_000 + 500)
        api.get(f"/tasks/{echoed.get('task_id')}", want(
            "KEY-18", "a look at a task whose result is not kept any more", 200,
            holds={"status": "succeeded", "result_expired": True}))


def _handlers_say_what_helps(bench: Bench) -> None:
    """One raises what another attempt may mend, one what none can."""
    bench.start_worker(2)
    raised = {kind: bench.submit({"fail": kind, "until_attempt": 1}, max_attempts=3)
              for kind in ("retryable", "permanent")}
    bench.await_all_terminal()
    inspected(bench, "the witness file", ["the attempts of handlers that raised"], {
        kind: [line.attempt for line in bench.witnessed("start") if line.task_id == task_id]
        for kind, task_id in raised.items()}, want(
            "HAND-03", "the attempts of a handler that raised each kind of error at its first",
            holds={"retryable": [1, 2], "permanent": [1]}))


def _what_is_guarded_is_done_once(bench: Bench) -> None:
    """An attempt that fails after a guarded operation, another task with its key, and one with a
    key of its own."""
    bench.start_worker(2)
    key = bench.new_id()
    first = bench.submit({"once": key}, {"fail": "retryable", "until_attempt": 1})
    bench.await_all_terminal()
    second, other = bench.submit({"once": key}), bench.submit({"once": bench.new_id()})
    bench.await_all_terminal()
    results = [place(view and view.result, "once") for view in map(bench.look, (
        first, second, other))]
    done = {"task_id": first, "attempt": 1}
    inspected(bench, "the target", ["what a guarded operation returned"], {"results": results},
              want("HAND-04", "a retry, another task with the same key, and one with its own",
                   holds={"results": [done, done, {"task_id": other, "attempt": 1}]}))


def _done(api: Api, task_type: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Such a task when it has ended, or as it was when the time was up."""
    answer = api.post("/tasks", {"task_type": task_type, "payload": payload})
    task_id, seen = place(answer.body, "task_id"), dict[str, Any]()

    def has_ended() -> bool:
        body = api.get(f"/tasks/{task_id}").body
        seen.update(body if isinstance(body, dict) else {})
        return seen.get("status") in TERMINAL

    try:
        wait_for(has_ended, reason=f"{task_type} to end", limit_s=ANSWER_LIMIT_S, every_s=0.05)
    except WaitedTooLong:
        return seen
    return seen


def _of(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: body.get(name) for name in names}


CASES = (
    Trial("conformance", "the_probe_does_what_it_is_told",
          "Steps in their order, a task without a return step, and a result that is too long.",
          ("DEMO-02", "DEMO-03", "HAND-05", "DLV-01"), _the_probe_does_what_it_is_told,
          needs=("handlers", "status")),
    Trial("conformance", "handlers_say_what_helps",
          "A handler raises what another attempt may mend, and one what none can.",
          ("HAND-03", "RETRY-03", "RETRY-04", "DLV-01"), _handlers_say_what_helps,
          needs=("handlers", "retry")),
    Trial("conformance", "what_is_guarded_is_done_once",
          "An attempt fails after a guarded operation; the retry and another task meet its key.",
          ("HAND-04", "DLV-01"), _what_is_guarded_is_done_once,
          needs=("handlers", "retry", "status")),
    Trial("conformance", "each_line_is_whole",
          "Many handlers write their lines at once, and one of their workers is killed.",
          ("DEMO-05", "DLV-01"), _each_line_is_whole, needs=("handlers",)),
    Trial("conformance", "the_demonstration_tasks_exist",
          "The demonstration tasks are asked for by their names; results are kept for a second.",
          ("DEMO-01", "KEY-18"), _the_demonstration_tasks_exist, needs=("handlers", "http"),
          settings={"DTQ_RESULT_RETENTION_S": str(RESULT_S)}),
)
