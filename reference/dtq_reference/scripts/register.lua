#!lua flags=allow-oom
-- A worker process says hello: its hash names it, and its queue has consumer groups, which
-- begin at the start of each stream, so that nothing that waits is skipped.
-- KEYS  1-10 streams, most urgent first; 11 worker hash; 12 workers; 13 queues
-- ARGV  map: queue, worker_id, incarnation, ttl_ms, again (only if no process is named there),
--       about (flat list of fields and values)
-- returns ours, or other when `again` was asked and another process is named there

local known = redis.call('HGET', KEYS[11], 'incarnation')
if call.again and known and known ~= call.incarnation then return 'other' end
for level = 1, 10 do
  local made = redis.pcall('XGROUP', 'CREATE', KEYS[level], GROUP, '0', 'MKSTREAM')
  if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then
    return made
  end
end
redis.call('HSET', KEYS[11], 'worker_id', call.worker_id, 'incarnation', call.incarnation,
           'last_heartbeat', NOW, unpack(call.about))
redis.call('PEXPIRE', KEYS[11], call.ttl_ms)
redis.call('SADD', KEYS[12], call.worker_id)
redis.call('SADD', KEYS[13], call.queue)
if not call.again and known ~= call.incarnation then publish('WORKER_STARTED', {}) end
return 'ours'
