-- Accept a task. Sent again with the same task_id it answers as the first time.
-- KEYS  1 stream of the task's priority, 2 schedule, 3 queues, 4 recent tasks
-- ARGV  map: task_prefix, task_id, queue, task_type, payload, metadata, priority, max_attempts,
--       timeout_ms, delay_ms
-- returns the state that it was accepted in: queued | pending

local task = call.task_prefix .. call.task_id
local known = redis.call('HMGET', task, 'created_at', 'available_at')
if known[1] then
  return known[2] == known[1] and 'queued' or 'pending'
end

local now = now_ms()
local status = call.delay_ms > 0 and 'pending' or 'queued'
redis.call('HSET', task, 'task_id', call.task_id, 'queue', call.queue,
           'task_type', call.task_type, 'payload', call.payload, 'metadata', call.metadata,
           'priority', call.priority, 'max_attempts', call.max_attempts,
           'timeout_ms', call.timeout_ms, 'created_at', now, 'available_at', now + call.delay_ms,
           'status', status, 'attempt', 1)
if status == 'queued' then
  local entry_id = redis.call('XADD', KEYS[1], '*', 'task_id', call.task_id, 'queue', call.queue,
      'task_type', call.task_type, 'payload', call.payload, 'attempt', 1,
      'max_attempts', call.max_attempts, 'priority', call.priority,
      'timeout_ms', call.timeout_ms, 'idempotency_key', '')
  redis.call('HSET', task, 'entry_id', entry_id)
else
  redis.call('ZADD', KEYS[2], now + call.delay_ms, call.task_id)
end
redis.call('SADD', KEYS[3], call.queue)
redis.call('ZADD', KEYS[4], now, call.task_id)
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -10001)
return status
