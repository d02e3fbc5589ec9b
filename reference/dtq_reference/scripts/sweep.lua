#!lua flags=allow-oom
-- Remove consumers whose process is gone and that have nothing pending, and the names of workers
-- whose hash has expired; announce, once, who has been silent for three of its heartbeats. A
-- consumer is named worker_id.incarnation.
-- KEYS  1-10 streams, most urgent first; 11 workers
-- ARGV  map: worker_prefix
-- returns how many consumers were removed

local function is_gone(consumer)
  local worker_id, incarnation = string.match(consumer, '^(.*)%.(%x+)$')
  if not worker_id then return false end
  local known = redis.call('HMGET', call.worker_prefix .. worker_id, 'incarnation', 'status')
  return known[1] ~= incarnation or known[2] == 'stopped'
end

local removed = 0
for level = 1, 10 do
  local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[level], GROUP)
  for _, consumer in ipairs(consumers.err and {} or consumers) do
    local about = fields_of(consumer)
    if about['pending'] == 0 and is_gone(about['name']) then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[level], GROUP, about['name'])
      removed = removed + 1
    end
  end
end
for _, worker_id in ipairs(redis.call('SMEMBERS', KEYS[11])) do
  local key = call.worker_prefix .. worker_id
  local known = redis.call('HMGET', key, 'last_heartbeat', 'heartbeat_interval_s', 'stale_since')
  if not known[1] then
    redis.call('SREM', KEYS[11], worker_id)
  elseif known[3] ~= known[1] and known[2] and NOW > known[1] + 3000 * known[2] then
    redis.call('HSET', key, 'stale_since', known[1])
    call.worker_id = worker_id
    publish('WORKER_STALE', {})
  end
end
return removed
