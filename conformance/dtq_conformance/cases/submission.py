"""Cases of submission: what is accepted is there, once; what is refused is not."""

from __future__ import annotations

import msgspec

from dtq_conformance.bench import Bench
from dtq_conformance.trial import Trial


def _accepted_tasks_are_there(bench: Bench) -> None:
    ids = [bench.submit(priority=priority, max_attempts=1 + priority % 5)
           for priority in range(10)]
    for task_id in ids:
        bench.look(task_id)
    bench.start_worker()


def _sent_again_is_one_task(bench: Bench) -> None:
    ids = bench.submit_many(5)
    send_again(bench, ids)
    bench.start_worker()
    bench.await_all_terminal()
    send_again(bench, ids)


def send_again(bench: Bench, ids: list[str]) -> None:
    """Send submissions again just as they were."""
    for task_id in ids:
        known = bench.submissions[task_id]
        bench.submit(*known.payload["steps"], task_id=task_id,
                     **{name: value for name, value in msgspec.structs.asdict(known).items()
                        if name not in ("task_id", "payload")})


def _outside_the_limits_is_refused(bench: Bench) -> None:
    bench.start_worker()
    bench.submit()
    for fields in ({"priority": 10}, {"priority": -1}, {"max_attempts": 0},
                   {"timeout_ms": 0}, {"timeout_ms": 3_600_001}, {"delay_ms": -1},
                   {"task_id": "A" * 32}, {"task_id": "a" * 31}):
        bench.submit(**fields)


CASES = (
    Trial("conformance", "accepted_tasks_are_there",
          "Tasks of every priority can be looked up as soon as they are accepted.",
          ("TASK-01", "DLV-01", "DLV-02", "DLV-09"), _accepted_tasks_are_there),
    Trial("conformance", "sent_again_is_one_task",
          "The same submission, sent again before and after the task ran, is one task.",
          ("TASK-02", "DLV-01", "DLV-09"), _sent_again_is_one_task,
          needs=("submission",)),
    Trial("conformance", "outside_the_limits_is_refused",
          "Submissions with a field outside its limits are refused and leave nothing.",
          ("TASK-03", "DLV-01"), _outside_the_limits_is_refused,
          needs=("submission",)),
)
