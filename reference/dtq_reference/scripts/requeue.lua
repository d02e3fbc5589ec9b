-- Give a dead-lettered task a new life: attempt 1, on a new entry; the letter goes.
-- KEYS  1 stream of the task's priority; 2 dead letters; 3 queues; 4 audit
-- ARGV  map: task_id, actor, request_id
-- returns {queued | refused | unknown | in_progress, the status, or the task whose key it is}

local KEPT_ATTEMPTS = 10

local task = load_task(call.task_id, 'status', 'queue', 'task_type', 'payload', 'priority',
                       'attempt', 'max_attempts', 'timeout_ms', 'idempotency_key', 'signature',
                       'letter_id', 'ttl_ms', 'worker_id', 'error_class', 'error_message',
                       'started_at', 'finished_at', 'previous_attempts')
if not task.status then return {'unknown', ''} end
local letter = task.letter_id and redis.call('XRANGE', KEYS[2], task.letter_id, task.letter_id)[1]
if task.status ~= 'dead_lettered' or not letter then return {'refused', task.status} end
if task.idempotency_key then
  local record = redis.call('GET', record_key(task))
  local owner = record and cjson.decode(record).task_id
  local status = owner and redis.call('HGET', call.task_prefix .. owner, 'status')
  if status and owner ~= task.task_id then
    if not STATE_OF_KEY[status] then return {'in_progress', owner} end
  else  -- its own, nobody's, or that of a task which has vanished
    redis.call('SET', record_key(task), idempotency_record(task.task_id, 'processing'))
  end
end

local previous = task.previous_attempts and cjson.decode(task.previous_attempts) or {}
previous[#previous + 1] = {
  attempt = tonumber(task.attempt), worker_id = task.worker_id, error_class = task.error_class,
  error_message = task.error_message, started_at = tonumber(task.started_at or 0),
  finished_at = tonumber(task.finished_at)}
if #previous > KEPT_ATTEMPTS then table.remove(previous, 1) end
task.attempt = 1
-- before what frees memory: a server that has none refuses the first write that needs some, and
-- lets one through that comes later
local entry_id = enqueue(KEYS[1], task)
redis.call('XDEL', KEYS[2], task.letter_id)
redis.call('HDEL', task.key, 'letter_id', 'error_class', 'error_message', 'retryable',
           'finished_at', 'started_at', 'duration_ms', 'retry_delay_ms', 'cancel_requested',
           'holder', 'losses', 'worker_id', 'expires_at')
redis.call('HSET', task.key, 'status', 'queued', 'attempt', 1, 'entry_id', entry_id,
           'previous_attempts', cjson.encode(previous))
if task.ttl_ms then redis.call('HSET', task.key, 'expires_at', NOW + task.ttl_ms) end
redis.call('SADD', KEYS[3], task.queue)
audit(KEYS[4], 'requeue', task.task_id)
publish('TASK_QUEUED', task)
return {'queued', 'queued'}
