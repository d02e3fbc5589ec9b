#!lua flags=allow-oom
-- Record how attempts ended and acknowledge them: each attempt in one step with its result,
-- its next appointment or its dead letter. Sent again it changes nothing and answers the same.
-- KEYS  1-10 streams, most urgent first; 11 schedule; 12 its depth by queue; 13 dead letters
-- ARGV  map: result_prefix, consumer, worker_id, result_retention_s, outcomes: list of maps with
--       task_id, level, entry_id, attempt, duration_ms, and either result or error_class,
--       error_message, retryable, delay_ms
-- returns for each outcome the state that it led to, or superseded when this process was no
-- longer the holder of that attempt

-- The outcome of a holder that is none any more is dropped, and that is said once.
local function supersede(task, outcome, status)
  local note = 'superseded:' .. outcome.entry_id .. ':' .. outcome.attempt .. ':' .. call.consumer
  if status and redis.call('HSETNX', task.key, note, NOW) == 1 then
    publish('TASK_SUPERSEDED', load_fields(task, 'queue', 'task_type'))
  end
  return 'superseded'
end

local function status_after(task, outcome)
  if not outcome.error_class then return 'succeeded' end
  if task.cancel_requested then return 'cancelled' end
  if outcome.retryable and outcome.attempt < tonumber(task.max_attempts) then return 'retrying' end
  return call.dlq_enabled and 'dead_lettered' or 'failed'
end

-- Record an end of an attempt. `settled` is the field that remembers it, `mine` whose it was.
local function record(task, outcome, settled, mine)
  local status = status_after(task, outcome)
  if status == 'succeeded' then
    if outcome.attempt > 1 then
      redis.call('HDEL', task.key, 'error_class', 'error_message', 'retryable', 'retry_delay_ms')
    end
    redis.call('SET', call.result_prefix .. task.task_id, outcome.result,
               'EX', call.result_retention_s)
    return finish(task, status, nil, 'duration_ms', outcome.duration_ms, settled, mine .. status)
  end
  local failure = {error_class = outcome.error_class, error_message = outcome.error_message,
                   retryable = outcome.retryable and 1 or 0, worker_id = call.worker_id}
  redis.call('HSET', task.key, 'duration_ms', outcome.duration_ms, settled, mine .. status,
             'finished_at', NOW, 'error_class', failure.error_class,
             'error_message', failure.error_message, 'retryable', failure.retryable)
  if status == 'cancelled' then return finish(task, status) end
  if status ~= 'retrying' then return fail_for_good(task.task_id, KEYS[13], failure) end
  redis.call('HSET', task.key, 'status', status, 'retry_delay_ms', outcome.delay_ms)
  schedule(KEYS[11], KEYS[12], task, NOW + outcome.delay_ms)
  publish('TASK_RETRY_SCHEDULED', task, {error_class = outcome.error_class,
                                         retry_delay_ms = outcome.delay_ms})
  return status
end

local done = {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}  -- the entries of each level

local function settle(outcome)
  local settled = 'outcome:' .. outcome.entry_id
  local key = call.task_prefix .. outcome.task_id
  local status, holder, attempt, entry_id, idempotency_key, note = unpack(redis.call(
      'HMGET', key, 'status', 'holder', 'attempt', 'entry_id', 'idempotency_key', settled))
  local task = {task_id = outcome.task_id, key = key, attempt = outcome.attempt,
                idempotency_key = idempotency_key or nil}
  local mine = call.consumer .. ' ' .. outcome.attempt .. ' '
  if note and string.sub(note, 1, #mine) == mine then return string.sub(note, #mine + 1) end
  if status ~= 'running' or holder ~= call.consumer
      or entry_id ~= outcome.entry_id or tonumber(attempt) ~= outcome.attempt then
    return supersede(task, outcome, status)
  end
  if outcome.error_class or task.idempotency_key or not is_unheard then
    load_fields(task, 'queue', 'task_type', 'max_attempts', 'cancel_requested')
  end
  table.insert(done[outcome.level], outcome.entry_id)
  return record(task, outcome, settled, mine)
end

local answers = {}
for place, outcome in ipairs(call.outcomes) do answers[place] = settle(outcome) end
for level = 1, 10 do if done[level][1] then acknowledge(KEYS[level], unpack(done[level])) end end
return answers
