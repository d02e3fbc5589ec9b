#!lua flags=allow-oom
-- The last step of stopping: the worker's hash says so, its consumer goes if nothing is pending
-- under its name (else the lease of what it leaves must end first), and the lock if it is its.
-- KEYS  1-10 streams, most urgent first; 11 worker hash; 12 workers; 13 scheduler lock
-- ARGV  map: consumer, worker_id, incarnation
-- returns ours | absent | other

if redis.call('GET', KEYS[13]) == call.consumer then redis.call('DEL', KEYS[13]) end
for level = 1, 10 do
  if #pending_of(KEYS[level], call.consumer, 1) == 0 then
    redis.pcall('XGROUP', 'DELCONSUMER', KEYS[level], GROUP, call.consumer)  -- if there is a group
  end
end
local known = redis.call('HMGET', KEYS[11], 'incarnation', 'status')
if not known[1] then return 'absent' end
if known[1] ~= call.incarnation then return 'other' end
redis.call('HSET', KEYS[11], 'status', 'stopped', 'active_tasks', 0)
redis.call('SREM', KEYS[12], call.worker_id)
if known[2] ~= 'stopped' then publish('WORKER_STOPPED', {}) end
return 'ours'
