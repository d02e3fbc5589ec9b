#!lua flags=allow-oom
-- The first step of stopping: say that this process takes nothing more, and give back all that
-- it has taken and not started, what it never saw (an answer was lost) included: running ->
-- queued on the same entry, the attempt unspent; or cancelled, if that was asked for meanwhile.
-- Given back is what is pending under its name (drawn anew at each start) except the attempts
-- that it names as started.
-- KEYS  1-10 streams, most urgent first; 11 worker hash
-- ARGV  map: consumer, worker_id, incarnation, started: list of {level, entry_id, attempt,
--       task_id}
-- returns {held, ended}: for each started attempt 1 if this process still holds it, else 0; of each
-- task that ended here its queue, task_type and status

if redis.call('HGET', KEYS[11], 'incarnation') == call.incarnation
    and redis.call('HGET', KEYS[11], 'status') ~= 'stopped' then
  redis.call('HSET', KEYS[11], 'status', 'draining')
end

-- The task, if this process holds it by this entry (and this attempt), else nil.
local function held_task(task_id, entry_id, attempt)
  local task = load_task(task_id, 'status', 'holder', 'attempt', 'entry_id', 'queue', 'task_type',
                         'idempotency_key', 'cancel_requested')
  return task.status == 'running' and task.holder == call.consumer and task.entry_id == entry_id
      and (not attempt or tonumber(task.attempt) == attempt) and task or nil
end

local keep, held = {}, {}
for place, started in ipairs(call.started) do
  local level, entry_id, attempt, task_id = unpack(started)
  keep[level .. ' ' .. entry_id] = true
  held[place] = held_task(task_id, entry_id, attempt) and 1 or 0
end

local function give_back(stream, entry)
  local task = held_task(fields_of(entry[2]).task_id or '', entry[1], nil)
  if not task then return end
  if task.cancel_requested then
    acknowledge(stream, entry[1])
    return finish(task, 'cancelled')
  end
  redis.call('HSET', task.key, 'status', 'queued')
  set_waiting(stream, entry[1])
  publish('TASK_QUEUED', task)
end

for level = 1, 10 do
  for _, pending in ipairs(pending_of(KEYS[level], call.consumer, 10000)) do
    local entry = redis.call('XRANGE', KEYS[level], pending[1], pending[1])[1]
    if entry and not keep[level .. ' ' .. entry[1]] then give_back(KEYS[level], entry) end
  end
end
return {held, ended}
