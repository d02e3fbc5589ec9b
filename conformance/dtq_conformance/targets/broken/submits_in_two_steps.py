"""Writes a submitted task first, and its entry in a second step of the client's."""

from __future__ import annotations

from typing import Any

import redis
from dtq_reference.operations import Submitted
from dtq_reference.queue import Queue

from dtq_conformance.targets.defect import Defect, rewrite

FIELDS = ("task_id", "queue", "task_type", "payload", "attempt", "max_attempts", "priority",
          "timeout_ms")
ENQUEUE = """
local fields, values = {'idempotency_key', ''}, redis.call('HMGET', KEYS[1], unpack(ARGV))
if redis.call('HGET', KEYS[1], 'status') ~= 'queued' then return end
if redis.call('HEXISTS', KEYS[1], 'entry_id') == 1 then return end
for place, name in ipairs(ARGV) do
  fields[#fields + 1] = name
  fields[#fields + 1] = values[place]
end
redis.call('HSET', KEYS[1], 'entry_id', redis.call('XADD', KEYS[2], '*', unpack(fields)))
"""


def _put_in() -> None:
    rewrite("submit", "  if status == 'queued' then\n", "  if status == 'never' then\n")
    rewrite("submit", "  else\n    schedule(", "  elseif status == 'pending' then\n    schedule(")
    submit = Queue.submit

    def submit_and_enqueue(self: Queue, **fields: Any) -> Submitted:
        accepted = submit(self, **fields)
        known, keys = self.operations.settings, self.operations.keys
        stream = keys.stream(fields.get("queue", "default"), fields.get("priority", 5))
        with redis.Redis.from_url(known.redis_url) as client:
            client.eval(ENQUEUE, 2, keys.task_prefix + accepted.task_id, stream, *FIELDS)
        return accepted

    Queue.submit = submit_and_enqueue  # type: ignore[method-assign]


DEFECT = Defect(
    "submits_in_two_steps",
    "Writes a submitted task first, and its entry in a second step of the client's.",
    caught_by=("nothing_lost",),
    also=("answers_as_promised", "depth_is_exact", "fields_as_promised", "handlers_as_promised",
          "metrics_count_right", "no_start_after_ttl", "nothing_left_behind",
          "one_event_per_transition", "one_way_leads_to_each_unfinished_task",
          "secrets_stay_secret"),
    put_in=_put_in)
