#!lua flags=allow-oom
-- Move due members of the schedule into their streams. Only the leader does; the lock is taken,
-- refreshed and looked at in the same step.
-- KEYS  1 scheduler lock; 2 schedule; then ten streams, most urgent first, for each queue
-- ARGV  map: task_prefix, consumer, lock_ms, limit, queues (names, in the order of KEYS)
-- returns {leader, promoted, more, unknown_queue}: 1 or 0; how many; 1 when more are due;
-- 1 when a due task belongs to a queue that was not named

local leader = redis.call('GET', KEYS[1])
if leader and leader ~= call.consumer then return {0, 0, 0, 0} end
redis.call('SET', KEYS[1], call.consumer, 'PX', call.lock_ms)

local place_of = {}
for place, queue in ipairs(call.queues) do place_of[queue] = place end

local now = now_ms()
local promoted, unknown = 0, 0
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, call.limit)
for _, task_id in ipairs(due) do
  local task = call.task_prefix .. task_id
  local known = redis.call('HMGET', task, 'status', 'queue', 'priority', 'task_type', 'payload',
                           'attempt', 'max_attempts', 'timeout_ms')
  local place = known[2] and place_of[known[2]]
  if known[1] ~= 'retrying' and known[1] ~= 'pending' then
    redis.call('ZREM', KEYS[2], task_id)
  elseif not place then
    unknown = 1
  else
    local attempt = tonumber(known[6])
    if known[1] == 'retrying' then attempt = attempt + 1 end
    local stream = KEYS[2 + (place - 1) * 10 + (10 - tonumber(known[3]))]
    local entry_id = redis.call('XADD', stream, '*', 'task_id', task_id, 'queue', known[2],
        'task_type', known[4], 'payload', known[5], 'attempt', attempt,
        'max_attempts', known[7], 'priority', known[3], 'timeout_ms', known[8],
        'idempotency_key', '')
    redis.call('HSET', task, 'status', 'queued', 'attempt', attempt, 'entry_id', entry_id)
    redis.call('ZREM', KEYS[2], task_id)
    promoted = promoted + 1
  end
end
return {1, promoted, #due == call.limit and 1 or 0, unknown}
