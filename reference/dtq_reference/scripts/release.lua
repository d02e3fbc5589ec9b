#!lua flags=allow-oom
-- The first step of stopping: say that this process takes nothing more, and give back all that
-- it has taken and not started, what it never saw (an answer was lost) included: running ->
-- queued on the same entry, the attempt unspent. Given back is what is pending under its name
-- (drawn anew at each start) except the attempts that it names as started.
-- KEYS  1-10 streams, most urgent first; 11 worker hash
-- ARGV  map: task_prefix, consumer, incarnation, started: list of {level, entry_id, attempt,
--       task_id}
-- returns for each started attempt 1 if this process still holds it, else 0

if redis.call('HGET', KEYS[11], 'incarnation') == call.incarnation
    and redis.call('HGET', KEYS[11], 'status') ~= 'stopped' then
  redis.call('HSET', KEYS[11], 'status', 'draining')
end

local function is_held(task_id, entry_id, attempt)
  local known = redis.call('HMGET', call.task_prefix .. task_id, 'status', 'holder', 'attempt',
                           'entry_id')
  return known[1] == 'running' and known[2] == call.consumer and known[4] == entry_id
      and (not attempt or tonumber(known[3]) == attempt)
end

local keep = {}
local held = {}
for place, started in ipairs(call.started) do
  local level, entry_id, attempt, task_id = unpack(started)
  keep[level .. ' ' .. entry_id] = true
  held[place] = is_held(task_id, entry_id, attempt) and 1 or 0
end

for level = 1, 10 do
  for _, pending in ipairs(pending_of(KEYS[level], call.consumer, 10000)) do
    local entry_id = pending[1]
    local entry = redis.call('XRANGE', KEYS[level], entry_id, entry_id)[1]
    if entry and not keep[level .. ' ' .. entry_id] then
      local fields = {}
      for place = 1, #entry[2], 2 do fields[entry[2][place]] = entry[2][place + 1] end
      if is_held(fields['task_id'], entry_id, nil) then
        redis.call('HSET', call.task_prefix .. fields['task_id'], 'status', 'queued')
        set_waiting(KEYS[level], entry_id)
      end
    end
  end
end
return held
