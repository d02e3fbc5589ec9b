"""Settles a task in one step, and acknowledges its entry in another: with the next heartbeat."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite

ACKNOWLEDGE = """
for level = 1, 10 do
  for _, pending in ipairs(pending_of(KEYS[level], call.consumer, 10000)) do
    local entry = redis.call('XRANGE', KEYS[level], pending[1], pending[1])[1]
    local status
    for place = 1, entry and #entry[2] or 0, 2 do
      if entry[2][place] == 'task_id' then
        status = redis.call('HGET', call.task_prefix .. entry[2][place + 1], 'status')
      end
    end
    if status ~= 'running' then acknowledge(KEYS[level], pending[1]) end
  end
end

"""


def _put_in() -> None:
    rewrite("settle",
            "if done[level][1] then acknowledge(KEYS[level], unpack(done[level])) end", "")
    rewrite("take", "    if entry and not is_settled(entry, false) then",
            "    if entry and entry.task.status == 'running' and not is_settled(entry, false) then")
    worker = "local worker = redis.call('HMGET', KEYS[11], 'incarnation', 'status')\n"
    rewrite("renew", worker, ACKNOWLEDGE + worker)


DEFECT = Defect(
    "acknowledges_with_the_next_heartbeat",
    "Settles a task in one step, and acknowledges its entry in another: with the next heartbeat.",
    caught_by=("one_way_leads_to_each_unfinished_task",),
    also=("answers_as_promised", "depth_is_exact", "keys_as_promised", "metrics_count_right",
          "nothing_left_behind"),
    put_in=_put_in)
