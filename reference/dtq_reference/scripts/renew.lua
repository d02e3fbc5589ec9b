#!lua flags=allow-oom
-- The heartbeat: renew the leases of what a process has in hand, and say that it lives.
-- No lease is renewed later than timeout_ms plus one visibility timeout after its attempt began.
-- KEYS  1-10 streams, most urgent first; 11 worker hash
-- ARGV  map: consumer, incarnation, lease_ms, ttl_ms, about (flat list of fields and
--       values of the worker hash), holds: list of {level, entry_id, attempt, task_id}
-- returns {state, held}: state as `take` has it; held for each hold is 0 when it is lost, 1, or 2
-- when its cancellation is asked for

local held = {}
for place, hold in ipairs(call.holds) do
  local level, entry_id, attempt, task_id = unpack(hold)
  local known = redis.call('HMGET', call.task_prefix .. task_id, 'status', 'holder', 'attempt',
                           'entry_id', 'started_at', 'timeout_ms', 'cancel_requested')
  held[place] = 0
  if known[1] == 'running' and known[2] == call.consumer and tonumber(known[3]) == attempt
      and known[4] == entry_id and NOW <= known[5] + known[6] + call.lease_ms then
    redis.call('XCLAIM', KEYS[level], GROUP, call.consumer, 0, entry_id, 'JUSTID')
    held[place] = known[7] and 2 or 1
  end
end

local worker = redis.call('HMGET', KEYS[11], 'incarnation', 'status')
if not worker[1] then return {'absent', held} end
if worker[1] ~= call.incarnation then return {'other', held} end
if worker[2] == 'stopped' then return {'leaving', held} end
redis.call('HSET', KEYS[11], 'last_heartbeat', NOW, unpack(call.about))
if worker[2] == 'draining' then redis.call('HSET', KEYS[11], 'status', 'draining') end
redis.call('PEXPIRE', KEYS[11], call.ttl_ms)
return {'ours', held}
