"""Cases of dead letters: each failure for good leaves one, with its story."""

from __future__ import annotations

from dtq_conformance.bench import Bench
from dtq_conformance.trial import Trial

LETTERS = 5
"""How many dead letters are kept where more than that are made."""


def _failures_for_good_leave_a_letter(bench: Bench) -> None:
    bench.start_worker()
    bench.submit({"fail": "permanent"})
    bench.submit({"fail": "retryable"}, max_attempts=2)
    bench.submit_many(3)


def _at_most_once_is_not_tried_again(bench: Bench) -> None:
    bench.start_worker()
    bench.submit({"kill": True}, max_attempts=1)


def _a_requeued_task_begins_anew(bench: Bench) -> None:
    """One is requeued, one discarded and then asked back, one is not dead at all."""
    bench.start_worker()
    lost = bench.submit({"fail": "retryable"}, max_attempts=2)
    gone = bench.submit({"fail": "permanent"})
    good = bench.submit()
    bench.await_all_terminal()
    bench.requeue(lost)
    bench.await_all_terminal([lost])
    bench.discard(gone)
    for task_id in (gone, good, bench.new_id()):
        bench.requeue(task_id)


def _purged_letters_are_gone(bench: Bench) -> None:
    bench.start_worker()
    ids = bench.submit_many(5, {"fail": "permanent"})
    bench.await_all_terminal()
    bench.purge_dead_letters()
    bench.requeue(ids[0])
    bench.submit({"fail": "permanent"})


def _an_old_end_ends_no_new_life(bench: Bench) -> None:
    """The first life fails for good; the second lasts until whatever is sent twice was sent. One
    worker with one slot, so that both lives are the same holder's and the same attempt's."""
    bench.start_worker(1)
    task_id = bench.submit({"sleep": 2_500}, {"fail": "permanent"})
    bench.await_all_terminal()
    bench.requeue(task_id)
    bench.await_witness("start", count=2)
    bench.look(task_id)  # one that is surely of the new life, and before its end
    bench.await_all_terminal()
    bench.await_witness("end", count=2)


def _the_newest_letters_are_kept(bench: Bench) -> None:
    """One death is seen before the next task is submitted, so that their order is known. The
    oldest is asked back, in vain."""
    bench.start_worker(1)
    ids = []
    for _ in range(3 * LETTERS):
        ids.append(bench.submit({"fail": "permanent"}))
        bench.await_all_terminal(ids[-1:])
    bench.requeue(ids[0])


CASES = (
    Trial("conformance", "failures_for_good_leave_a_letter",
          "A permanent failure and a spent budget, among tasks that succeed.",
          ("DLQ-01", "DLQ-02", "DLQ-03"), _failures_for_good_leave_a_letter),
    Trial("conformance", "at_most_once_is_not_tried_again",
          "A task with one attempt kills its worker; it is dead-lettered, not started again.",
          ("DLQ-04", "RETRY-01", "DLV-01"), _at_most_once_is_not_tried_again),
    Trial("conformance", "a_requeued_task_begins_anew",
          "A dead letter is requeued, another discarded and asked back.",
          ("DLQ-01", "DLQ-03", "DLQ-06", "DLQ-08", "DLV-01"), _a_requeued_task_begins_anew),
    Trial("conformance", "an_old_end_ends_no_new_life",
          "A requeued task is executed by the holder of its first life, under the same attempt.",
          ("DLV-08", "DLQ-01", "DLQ-03", "DLQ-06", "DLV-01"), _an_old_end_ends_no_new_life,
          snapshots=True),
    Trial("conformance", "the_newest_letters_are_kept",
          "Three times as many tasks fail for good, one after the other, as letters are kept.",
          ("DLQ-08", "DLQ-09", "DLV-01"), _the_newest_letters_are_kept,
          needs=("dlq", "status"), settings={"DTQ_DLQ_MAXLEN": str(LETTERS)}),
    Trial("conformance", "purged_letters_are_gone",
          "All dead letters are purged; one of them is asked back, and another one comes.",
          ("DLQ-01", "DLQ-03", "DLQ-08"), _purged_letters_are_gone),
)
