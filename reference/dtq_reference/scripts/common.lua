-- Shared by the scripts that need it; `scripts.py` puts it in front of them.
-- ARGV[1] of every script is one msgpack map, here `call`. Beside what a script's head names, it
-- holds what `calls.py` calls common: task_prefix, idempotency_prefix, events, retention_s,
-- idem_ttl_s, dlq_enabled, dlq_maxlen.

local GROUP = 'workers'
-- A consumer that never reads: entries that wait although they were read once are pending
-- under its name, idle for a day, so that the next look for ended leases finds them at once.
local RELEASED = 'released'
local ONE_DAY_MS = 86400000

local call = cmsgpack.unpack(ARGV[1])

local time = redis.call('TIME')
local NOW = time[1] * 1000 + math.floor(time[2] / 1000)  -- epoch ms, the same in all of a step

-- Publish what happened. `about`: task_id, queue, task_type, attempt; all of them may be absent.
-- The JSON is put together here, since cjson would take several times as long for each event.
-- Where nobody heard the first one of this step nobody hears the others: those are not made, unless
-- a replica or another node of a cluster might have listeners of its own.
local published, heard_by, is_unheard = 0, nil, false
local EVENT = '{"event_id":"' .. time[1] .. '-' .. time[2] .. '-%d","ts":' .. NOW .. ',"type":"%s",'
    .. '"task_id":%s,"queue":%s,"task_type":%s,"attempt":%d,"worker_id":%s%s}'
local function publish(what, about, metadata)
  published = published + 1
  if published == 2 and heard_by == 0 then
    local server = tostring(redis.pcall('INFO', 'replication', 'cluster'))
    is_unheard = string.find(server, 'connected_slaves:0\r.*cluster_enabled:0\r')
  end
  if is_unheard then return end
  heard_by = redis.call('PUBLISH', call.events, string.format(
      EVENT, published, what, cjson.encode(about.task_id or ''), cjson.encode(about.queue or ''),
      cjson.encode(about.task_type or ''), tonumber(about.attempt) or 0,
      cjson.encode(call.worker_id or ''),
      metadata and ',"metadata":' .. cjson.encode(metadata) or ''))
end

-- Read fields of a task's hash into the map that stands for it; an absent field is nil.
local function load_fields(task, ...)
  local found = redis.call('HMGET', task.key, ...)
  for place, name in ipairs({...}) do task[name] = found[place] or nil end
  return task
end

local function load_task(task_id, ...)
  return load_fields({task_id = task_id, key = call.task_prefix .. task_id}, ...)
end

-- Fields and values that stand one after the other, as a map.
local function fields_of(flat)
  local fields = {}
  for place = 1, #flat, 2 do fields[flat[place]] = flat[place + 1] end
  return fields
end

-- Take entries out of their stream and out of the group's pending list.
local function acknowledge(stream, ...)
  redis.pcall('XACK', stream, GROUP, ...)  -- nothing is pending where the group is gone
  redis.call('XDEL', stream, ...)
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

-- Add a queue's entry for a loaded task: its queue, task_type, payload, attempt, max_attempts,
-- priority, timeout_ms, idempotency_key, signature. Returns its id.
local function enqueue(stream, task)
  return redis.call('XADD', stream, '*', 'task_id', task.task_id, 'queue', task.queue,
      'task_type', task.task_type, 'payload', task.payload, 'attempt', task.attempt,
      'max_attempts', task.max_attempts, 'priority', task.priority,
      'timeout_ms', task.timeout_ms, 'idempotency_key', task.idempotency_key or '',
      unpack(task.signature and {'signature', task.signature} or {}))
end

-- The schedule and its depth by queue change together.
local function schedule(key, depth, task, due_ms)
  redis.call('ZADD', key, due_ms, task.task_id)
  redis.call('HINCRBY', depth, task.queue, 1)
end

local function unschedule(key, depth, task)
  if redis.call('ZREM', key, task.task_id) == 1
      and redis.call('HINCRBY', depth, task.queue, -1) <= 0 then
    redis.call('HDEL', depth, task.queue)
  end
end

local function record_key(task)
  return call.idempotency_prefix .. task.queue .. ':' .. task.idempotency_key
end

local function idempotency_record(task_id, state)
  return cjson.encode({task_id = task_id, state = state, updated_at = NOW})
end

local STATE_OF_KEY = {succeeded = 'completed', failed = 'failed', dead_lettered = 'failed',
                      cancelled = 'failed', expired = 'failed'}

-- End a task: status, expiry, the record of its key if that names it, event. `task` has queue,
-- task_type, attempt and idempotency_key; after the event's metadata come more fields and values.
-- What a step ended is told in the answers that have a place for it, so that it can be counted.
local ended = not call.outcomes and {}  -- {queue, task_type, status} each
local function finish(task, status, metadata, ...)
  if ended then ended[#ended + 1] = {task.queue or '', task.task_type or '', status} end
  redis.call('HSET', task.key, 'status', status, 'finished_at', NOW, ...)
  if status ~= 'dead_lettered' then redis.call('EXPIRE', task.key, call.retention_s) end
  if task.idempotency_key then
    local record = redis.call('GET', record_key(task))
    if record and cjson.decode(record).task_id == task.task_id then
      redis.call('SET', record_key(task),
                 idempotency_record(task.task_id, STATE_OF_KEY[status]), 'EX', call.idem_ttl_s)
    end
  end
  if not is_unheard then publish('TASK_' .. string.upper(status), task, metadata) end
  return status
end

-- Throw a dead letter away. If its task knows it by this letter, that begins to expire: then its
-- key is returned.
local function drop_letter(letters, letter)
  local key = call.task_prefix .. (fields_of(letter[2]).task_id or '')
  redis.call('XDEL', letters, letter[1])
  if redis.call('HGET', key, 'letter_id') ~= letter[1] then return nil end
  redis.call('HDEL', key, 'letter_id')
  redis.call('EXPIRE', key, call.retention_s)
  return key
end

-- Add a dead letter; the oldest beyond the limit go.
local function add_dead_letter(letters, fields)
  local excess = redis.call('XLEN', letters) + 1 - call.dlq_maxlen
  if excess > 0 then
    for _, entry in ipairs(redis.call('XRANGE', letters, '-', '+', 'COUNT', excess)) do
      drop_letter(letters, entry)
    end
  end
  return redis.call('XADD', letters, '*', unpack(fields))
end

-- End a task without success: as a dead letter, or as `failed` where there are none.
-- `letters` is the dead-letter stream; `failure` has error_class, error_message, retryable
-- (0 or 1), worker_id. The entry itself is acknowledged by the caller.
local function fail_for_good(task_id, letters, failure)
  local task = load_task(task_id, 'queue', 'task_type', 'payload', 'metadata', 'attempt',
                         'priority', 'max_attempts', 'timeout_ms', 'created_at', 'available_at',
                         'idempotency_key')
  redis.call('HSET', task.key, 'error_class', failure.error_class,
             'error_message', failure.error_message, 'retryable', failure.retryable)
  local about = {error_class = failure.error_class}
  if not call.dlq_enabled then return finish(task, 'failed', about) end
  redis.call('HSET', task.key, 'letter_id', add_dead_letter(letters, {
    'task_id', task_id, 'queue', task.queue, 'original_queue', task.queue,
    'task_type', task.task_type, 'payload', task.payload, 'metadata', task.metadata,
    'attempts_made', task.attempt, 'attempt', task.attempt, 'max_attempts', task.max_attempts,
    'priority', task.priority, 'timeout_ms', task.timeout_ms,
    'idempotency_key', task.idempotency_key or '', 'created_at', task.created_at,
    'available_at', task.available_at, 'failed_at_ms', NOW,
    'last_error_class', failure.error_class, 'last_error', failure.error_message,
    'retryable', failure.retryable, 'worker_id', failure.worker_id}))
  return finish(task, 'dead_lettered', about)
end

-- Write down an administrative action; `call` has actor and request_id.
local function audit(stream, action, task_id)
  redis.call('XADD', stream, 'MAXLEN', '~', 10000, '*', 'actor', call.actor, 'action', action,
             'task_id', task_id, 'ts', NOW, 'request_id', call.request_id)
end
