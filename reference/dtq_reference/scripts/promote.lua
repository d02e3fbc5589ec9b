#!lua flags=allow-oom
-- Move due members of the schedule into their streams, or end them where they may not run any
-- more. Only the leader does; the lock is taken, refreshed and looked at in the same step.
-- KEYS  1 scheduler lock; 2 schedule; 3 its depth by queue; then ten streams, most urgent first,
--       for each queue
-- ARGV  map: consumer, worker_id, lock_ms, limit, queues (names, in the order of KEYS)
-- returns {leader, promoted, more, unknown_queue, ended}: 1 or 0; how many; 1 when more are due;
-- 1 when a due task belongs to a queue that was not named; of each task that ended here its queue,
-- task_type and status

local leader = redis.call('GET', KEYS[1])
if leader and leader ~= call.consumer then return {0, 0, 0, 0, {}} end
redis.call('SET', KEYS[1], call.consumer, 'PX', call.lock_ms)

local place_of = {}
for place, queue in ipairs(call.queues) do place_of[queue] = place end

-- A member without a hash cannot say whose queue's it was: count all of them anew.
local function forget(task_id)
  redis.call('ZREM', KEYS[2], task_id)
  redis.call('DEL', KEYS[3])
  for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    local queue = redis.call('HGET', call.task_prefix .. member, 'queue')
    if queue then redis.call('HINCRBY', KEYS[3], queue, 1) end
  end
end

local function promote(task)
  local is_retry = task.status == 'retrying'
  if is_retry then task.attempt = task.attempt + 1 end
  local stream = KEYS[3 + (place_of[task.queue] - 1) * 10 + (10 - task.priority)]
  redis.call('HSET', task.key, 'status', 'queued',
             'attempt', task.attempt, 'entry_id', enqueue(stream, task))
  publish(is_retry and 'TASK_RETRIED' or 'TASK_QUEUED', task)
end

local promoted, unknown = 0, 0
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', NOW, 'LIMIT', 0, call.limit)
for _, task_id in ipairs(due) do
  local task = load_task(task_id, 'status', 'queue', 'priority', 'task_type', 'payload', 'attempt',
                         'max_attempts', 'timeout_ms', 'idempotency_key', 'signature',
                         'cancel_requested', 'expires_at')
  if not task.status then
    forget(task_id)
  elseif task.status ~= 'retrying' and task.status ~= 'pending' then
    unschedule(KEYS[2], KEYS[3], task)
  elseif not place_of[task.queue] then
    unknown = 1
  else
    unschedule(KEYS[2], KEYS[3], task)
    if task.cancel_requested then
      finish(task, 'cancelled')
    elseif task.expires_at and tonumber(task.expires_at) <= NOW then
      finish(task, 'expired')
    else
      promote(task)
      promoted = promoted + 1
    end
  end
end
return {1, promoted, #due == call.limit and 1 or 0, unknown, ended}
