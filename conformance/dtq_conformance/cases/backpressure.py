"""Cases of backpressure: a full queue refuses, exactly, and hinders nothing that it has."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

from dtq_conformance.bench import Bench
from dtq_conformance.front import api_of
from dtq_conformance.trial import Trial

DEPTH = 20
CALLERS = 4
EACH = 10
"""Submissions of each caller: twice as many in all as the queue takes."""

SMALL = 4


def _a_full_queue_refuses_exactly(bench: Bench) -> None:
    """Several callers at once, one of them with delayed tasks; then one task ends."""
    def submit(caller: int) -> None:
        with contextlib.closing(bench.open_target(bench.lab.broker.url)) as target:
            for _ in range(EACH):
                bench.submit(through=target, delay_ms=0 if caller else 2_000)

    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(submit, range(CALLERS)))
    for task_id in bench.submissions:
        bench.look(task_id)
    bench.start_worker()
    bench.await_all_terminal()
    bench.submit()


def _a_full_queue_hinders_nothing_that_it_has(bench: Bench) -> None:
    """Retries, promotions and a requeue come back into a queue that is full by then."""
    bench.start_worker()
    dead = bench.submit({"fail": "permanent"})
    bench.await_all_terminal([dead])
    bench.submit({"fail": "retryable", "until_attempt": 2})
    bench.submit(delay_ms=500)
    for _ in range(SMALL):
        bench.submit(delay_ms=3_000)
    bench.requeue(dead)


def _the_api_says_when_to_try_again(bench: Bench) -> None:
    """The last of three submissions to a queue for two."""
    with api_of(bench) as api:
        for _ in range(3):
            bench.submit(through=api, delay_ms=2_000)


CASES = (
    Trial("conformance", "a_full_queue_refuses_exactly",
          "Four callers submit twice as many tasks as a queue takes.",
          ("BACK-01", "BACK-02", "DLV-01"), _a_full_queue_refuses_exactly,
          needs=("backpressure", "status"), settings={"DTQ_MAX_QUEUE_DEPTH": str(DEPTH)}),
    Trial("conformance", "a_full_queue_hinders_nothing_that_it_has",
          "Retries, promotions and a requeue come back into a queue that is full.",
          ("BACK-03", "DLV-01"), _a_full_queue_hinders_nothing_that_it_has,
          needs=("backpressure", "retry", "dlq"), settings={"DTQ_MAX_QUEUE_DEPTH": str(SMALL)}),
    Trial("conformance", "the_api_says_when_to_try_again",
          "Three submissions through the API to a queue for two.",
          ("BACK-04", "DLV-01"), _the_api_says_when_to_try_again,
          needs=("backpressure", "http"), settings={"DTQ_MAX_QUEUE_DEPTH": "2"}),
)
