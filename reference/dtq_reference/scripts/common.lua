-- Shared by the scripts that need it; `scripts.py` puts it in front of them.
-- ARGV[1] of every script is one msgpack map, here `call`.

local GROUP = 'workers'
-- A consumer that never reads: entries that wait although they were read once are pending
-- under its name, idle for a day, so that the next look for ended leases finds them at once.
local RELEASED = 'released'
local ONE_DAY_MS = 86400000

local call = cmsgpack.unpack(ARGV[1])

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Take an entry out of its stream and out of the group's pending list.
local function acknowledge(stream, entry_id)
  redis.call('XACK', stream, GROUP, entry_id)
  redis.call('XDEL', stream, entry_id)
end

-- What is pending under a consumer's name, also where the group is gone: then nothing is.
local function pending_of(stream, consumer, count)
  local found = redis.pcall('XPENDING', stream, GROUP, '-', '+', count, consumer)
  return found.err and {} or found
end

-- Let an entry that was read wait again.
local function set_waiting(stream, entry_id)
  redis.call('XCLAIM', stream, GROUP, RELEASED, 0, entry_id, 'IDLE', ONE_DAY_MS, 'JUSTID')
end

-- Add a dead letter; the oldest beyond the limit go, and their tasks begin to expire.
local function add_dead_letter(letters, fields)
  local excess = redis.call('XLEN', letters) + 1 - call.dlq_maxlen
  if excess > 0 then
    for _, entry in ipairs(redis.call('XRANGE', letters, '-', '+', 'COUNT', excess)) do
      for place = 1, #entry[2], 2 do
        if entry[2][place] == 'task_id' then
          redis.call('EXPIRE', call.task_prefix .. entry[2][place + 1], call.retention_s)
        end
      end
      redis.call('XDEL', letters, entry[1])
    end
  end
  redis.call('XADD', letters, '*', unpack(fields))
end

-- End a task without success: as a dead letter, or as `failed` where there are none.
-- `letters` is the dead-letter stream; `failure` has error_class, error_message, retryable
-- (0 or 1), worker_id. The entry itself is acknowledged by the caller.
local function fail_for_good(task_id, letters, failure)
  local task = call.task_prefix .. task_id
  local now = now_ms()
  local status = call.dlq_enabled and 'dead_lettered' or 'failed'
  redis.call('HSET', task, 'status', status, 'finished_at', now,
             'error_class', failure.error_class, 'error_message', failure.error_message,
             'retryable', failure.retryable)
  if not call.dlq_enabled then
    redis.call('EXPIRE', task, call.retention_s)
    return status
  end
  local known = redis.call('HMGET', task, 'queue', 'task_type', 'payload', 'metadata', 'attempt',
                           'max_attempts', 'priority', 'timeout_ms', 'created_at', 'available_at')
  add_dead_letter(letters, {
    'task_id', task_id, 'queue', known[1], 'original_queue', known[1], 'task_type', known[2],
    'payload', known[3], 'metadata', known[4], 'attempts_made', known[5], 'attempt', known[5],
    'max_attempts', known[6], 'priority', known[7], 'timeout_ms', known[8],
    'created_at', known[9], 'available_at', known[10], 'failed_at_ms', now,
    'last_error_class', failure.error_class, 'last_error', failure.error_message,
    'retryable', failure.retryable, 'worker_id', failure.worker_id})
  return status
end
