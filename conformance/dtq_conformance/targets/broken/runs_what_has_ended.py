"""An entry of a finished task begins it anew."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "    acknowledge(KEYS[entry.level], entry.id)\n"
            "    publish('TASK_DUPLICATE_ABSORBED', load_task(task.task_id, 'queue', "
            "'task_type', 'attempt'))\n",
            "    redis.call('HSET', task.key, 'entry_id', entry.id)\n"
            "    return false\n")


DEFECT = Defect(
    "runs_what_has_ended",
    "Executes a task that has ended when another entry of it is read.",
    caught_by=("keys_as_promised", "one_terminal_state", "duplicates_justified"),
    also=("attempts_accounted_for", "attempts_bounded", "cancelled_stays_cancelled",
          "dead_letters_complete", "no_start_after_ttl", "one_event_per_transition",
          "strict_priority"),
    put_in=_put_in)
