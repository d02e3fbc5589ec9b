#!lua flags=allow-oom
-- Record how attempts ended and acknowledge them: each attempt in one step with its result,
-- its next appointment or its dead letter. Sent again it changes nothing and answers the same.
-- KEYS  1-10 streams, most urgent first; 11 schedule; 12 dead letters
-- ARGV  map: task_prefix, result_prefix, consumer, worker_id, retention_s, result_retention_s,
--       dlq_enabled, dlq_maxlen, outcomes: list of maps with task_id, level, entry_id, attempt,
--       duration_ms, and either result or error_class, error_message, retryable, delay_ms
-- returns for each outcome the state that it led to, or superseded when this process was no
-- longer the holder of that attempt

local function settle(outcome)
  local task = call.task_prefix .. outcome.task_id
  local stream = KEYS[outcome.level]
  local known = redis.call('HMGET', task, 'status', 'holder', 'attempt', 'entry_id',
                           'max_attempts', 'outcome:' .. outcome.entry_id)
  local mine = call.consumer .. ' ' .. outcome.attempt .. ' '
  if known[6] and string.sub(known[6], 1, #mine) == mine then
    return string.sub(known[6], #mine + 1)
  end
  if known[1] ~= 'running' or known[2] ~= call.consumer or known[4] ~= outcome.entry_id
      or tonumber(known[3]) ~= outcome.attempt then
    return 'superseded'
  end

  acknowledge(stream, outcome.entry_id)
  local now = now_ms()
  local status
  redis.call('HSET', task, 'duration_ms', outcome.duration_ms, 'finished_at', now)
  if not outcome.error_class then
    status = 'succeeded'
    redis.call('SET', call.result_prefix .. outcome.task_id, outcome.result,
               'EX', call.result_retention_s)
    redis.call('HSET', task, 'status', status)
    redis.call('EXPIRE', task, call.retention_s)
  elseif outcome.retryable and outcome.attempt < tonumber(known[5]) then
    status = 'retrying'
    redis.call('HSET', task, 'status', status, 'error_class', outcome.error_class,
               'error_message', outcome.error_message, 'retryable', 1,
               'retry_delay_ms', outcome.delay_ms)
    redis.call('ZADD', KEYS[11], now + outcome.delay_ms, outcome.task_id)
  else
    status = fail_for_good(outcome.task_id, KEYS[12], {
      error_class = outcome.error_class, error_message = outcome.error_message,
      retryable = outcome.retryable and 1 or 0, worker_id = call.worker_id})
  end
  redis.call('HSET', task, 'outcome:' .. outcome.entry_id, mine .. status)
  return status
end

local answers = {}
for place, outcome in ipairs(call.outcomes) do
  answers[place] = settle(outcome)
end
return answers
