"""Records a retry and schedules it in two steps, and dies between them once a task."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from dtq_reference.settler import Settler

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  schedule(KEYS[11], KEYS[12], task, NOW + outcome.delay_ms)\n", "")
    settle = Settler._settle

    async def settle_and_schedule(self: Settler, batch: list[Any]) -> None:
        await settle(self, batch)
        redis, schedule = self._transport.redis, self._hands.keys.schedule
        for _, outcome in batch:
            if outcome.retryable and outcome.taken.attempt < outcome.taken.max_attempts:
                if outcome.taken.attempt == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                due_ms = round(time.time() * 1000) + outcome.delay_ms
                await redis.zadd(schedule, {outcome.taken.task_id: due_ms})

    Settler._settle = settle_and_schedule  # type: ignore[method-assign]


DEFECT = Defect(
    "schedules_retry_in_two_steps",
    "Records a retry and schedules it in two steps, and dies between them once a task.",
    caught_by=("nothing_lost",),
    also=("attempts_bounded", "dead_letters_complete", "depth_is_exact", "fields_as_promised",
          "handlers_as_promised", "keys_as_promised", "metrics_count_right", "no_start_after_ttl",
          "nothing_left_behind", "one_event_per_transition",
          "one_way_leads_to_each_unfinished_task", "what_was_answered_survives"),
    put_in=_put_in)
