"""Cases of pausing: nothing is taken of a paused queue, and what is in hand runs on."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import LEASE_MS, REAP_MS, Trial


def _a_paused_queue_waits(bench: Bench) -> None:
    """New, delayed and retried work waits; what was in hand runs to its end."""
    bench.start_worker()
    held = bench.submit({"sleep": LEASE_MS}, label="in hand")
    retried = bench.submit({"sleep": LEASE_MS // 2}, {"fail": "retryable", "until_attempt": 1},
                           label="tried again")
    for label in ("in hand", "tried again"):
        bench.await_witness("start", label=label)
    bench.pause()
    bench.submit_many(3)
    late = bench.submit(delay_ms=LEASE_MS // 4)
    bench.await_all_terminal([held])
    bench.await_status(retried, "queued")
    bench.await_quiet(LEASE_MS)
    for task_id in (held, late):
        bench.look(task_id)
    bench.resume()


def _a_pause_holds_for_redeliveries(bench: Bench) -> None:
    """The holder is killed in the pause; another worker waits with room for its task."""
    first = bench.start_worker()
    bench.submit({"sleep": 10 * LEASE_MS, "until_attempt": 1}, label="is lost")
    bench.await_witness("start", label="is lost")
    bench.pause()
    first.process.kill()
    bench.await_ready(bench.start_worker())
    bench.await_quiet(2 * LEASE_MS + 2 * REAP_MS)
    bench.resume()


CASES = (
    Trial("conformance", "a_paused_queue_waits",
          "New, delayed and retried work of a paused queue; two tasks are in hand.",
          ("PAUSE-01", "PAUSE-02", "PAUSE-03", "PAUSE-05", "DLV-01"), _a_paused_queue_waits,
          needs=("pause",)),
    Trial("conformance", "a_pause_holds_for_redeliveries",
          "The holder of a task is killed while its queue is paused.",
          ("PAUSE-01", "PAUSE-05", "DLV-01"), _a_pause_holds_for_redeliveries,
          needs=("pause",)),
)
