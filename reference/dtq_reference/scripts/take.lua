#!lua flags=allow-oom
-- Hand a worker process what it may execute next, at most `room` tasks, in strict order:
-- level by level, within a level the oldest entry first, ended leases and new work alike.
-- KEYS  1-10 streams, most urgent first; 11 worker hash; 12 dead letters; 13 the queue's pause
-- ARGV  map: consumer, worker_id, incarnation, room, held (how many it has in hand), reap (look at
--       ended leases too), lease_ms, and one of: in_hand (list of {level, entry_id, attempt,
--       task_id}, of all that it has), or number, of a process that has the answer to every other
--       take: nothing is looked for then that it may lack, and what was given is remembered under
--       the number, so that this take may be sent again
-- returns {state, tasks, blocked, last_ids, ended}
--   state     ours | absent | other | leaving: what the worker hash says of this process;
--             paused: ours, but of this queue nothing is taken now
--   tasks     {level, entry_id, attempt, task_id, task_type, payload, max_attempts, timeout_ms,
--              queue, alone, created_at, idempotency_key, signature of the entry} each
--   blocked   1 when a task that must run alone waits for this process to be empty-handed
--   last_ids  ids after which new entries stand, when nothing more was to be had; else {}
--   ended     {queue, task_type, status} of each task that ended here without another attempt

local worker = redis.call('HMGET', KEYS[11], 'incarnation', 'status', 'take', 'given')
if not worker[1] then return {'absent', {}, 0, {}, {}} end
if worker[1] ~= call.incarnation then return {'other', {}, 0, {}, {}} end
if worker[2] == 'draining' or worker[2] == 'stopped' then return {'leaving', {}, 0, {}, {}} end

local tasks = {}
local given = worker[3] == call.number and worker[4] or ''
local in_hand = {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}
for _, hold in ipairs(call.in_hand or {}) do in_hand[hold[1]][hold[2]] = hold[3] end

-- Whether this process knows that it has what is pending under its name. A redelivery makes the
-- count of deliveries the number of the attempt, so that one whose answer was lost is told apart.
local function is_known(level, entry_id, count)
  if call.number then return not string.find(given, level .. ':' .. entry_id .. ' ', 1, true) end
  local attempt = in_hand[level][entry_id]
  return attempt and (count == 1 or count == attempt)
end

-- The fields of an entry in the order in which `enqueue` writes them.
local ORDER = {'task_id', 'queue', 'task_type', 'payload', 'attempt', 'max_attempts', 'priority',
               'timeout_ms', 'idempotency_key', 'signature'}

-- An entry with the task that it leads to: what is executed stands in the entry, how far the task
-- has come in its hash. `values` are the entry's, each at twice its place in ORDER.
local function read_entry(level, entry_id, flat)
  local values = flat
  if flat[1] ~= 'task_id' or flat[3] ~= 'queue' or flat[5] ~= 'task_type' or flat[7] ~= 'payload'
    or flat[11] ~= 'max_attempts' or flat[15] ~= 'timeout_ms' or flat[17] ~= 'idempotency_key' then
    local fields = fields_of(flat)
    values = {}
    for place, name in ipairs(ORDER) do values[2 * place] = fields[name] or '' end
  end
  local key = call.task_prefix .. values[2]
  local known = redis.call('HMGET', key, 'status', 'entry_id', 'attempt', 'created_at',
                           'cancel_requested', 'expires_at')
  local is_first = known[3] == '1'  -- then no holder was lost
  return {level = level, id = entry_id, flat = flat, values = values, task = {
    task_id = values[2], key = key, queue = values[4], task_type = values[6],
    idempotency_key = values[18] ~= '' and values[18], status = known[1], entry_id = known[2],
    attempt = tonumber(known[3]), created_at = known[4], cancel_requested = known[5],
    expires_at = known[6],
    losses = is_first and 0 or tonumber(redis.call('HGET', key, 'losses') or 0)}}
end

-- Mark a task as running here and put it into the answer; returns alone if nothing may be taken
-- beside it. A take that is only answered again is no second start.
local function hand_over(entry, is_again)
  local task, value = entry.task, entry.values
  redis.call('HSET', task.key, 'status', 'running', 'holder', call.consumer,
             'worker_id', call.worker_id, 'started_at', NOW)
  if not is_again and not is_unheard then publish('TASK_STARTED', task) end
  tasks[#tasks + 1] = {
    entry.level, entry.id, task.attempt, task.task_id, value[6], value[8],
    tonumber(value[12]) or 0, tonumber(value[16]) or 0, value[4], task.losses >= 2 and 1 or 0,
    tonumber(task.created_at), value[18], value[14] == 10 - entry.level .. '' and value[20] or ''}
  return task.losses >= 2 and 'alone' or nil
end

-- An entry whose task has no hash: it cannot be executed, and must not be lost unseen.
local function bury_orphan(entry)
  acknowledge(KEYS[entry.level], entry.id)
  if not call.dlq_enabled then return end
  local letter, fields = entry.flat, fields_of(entry.flat)
  for _, part in ipairs({'attempts_made', 0, 'failed_at_ms', NOW, 'metadata', '{}',
                         'last_error_class', 'OrphanEntry', 'last_error', 'the task has no record',
                         'retryable', 0, 'worker_id', call.worker_id,
                         'original_queue', fields.queue or ''}) do
    letter[#letter + 1] = part
  end
  add_dead_letter(KEYS[12], letter)
  local about = {}  -- whatever somebody else may have written must not spoil an event
  for _, name in ipairs({'task_id', 'queue', 'task_type'}) do
    about[name] = string.gsub(fields[name] or '', '[^ -~]', '?')
  end
  publish('TASK_DEAD_LETTERED', about, {error_class = 'OrphanEntry'})
end

-- Settle without executing what needs no execution: only a queued or running task has an entry
-- that leads to it, and only one; and no attempt begins after a request to cancel, nor, unless it
-- began before, when its time is over. Returns true when this entry is done with.
local function is_settled(entry, may_expire)
  local task = entry.task
  if not task.status then
    bury_orphan(entry)
  elseif (task.status ~= 'queued' and task.status ~= 'running') or task.entry_id ~= entry.id then
    acknowledge(KEYS[entry.level], entry.id)
    publish('TASK_DUPLICATE_ABSORBED', load_task(task.task_id, 'queue', 'task_type', 'attempt'))
  elseif task.cancel_requested then
    acknowledge(KEYS[entry.level], entry.id)
    finish(task, 'cancelled')
  elseif may_expire and task.expires_at and tonumber(task.expires_at) <= NOW then
    acknowledge(KEYS[entry.level], entry.id)
    finish(task, 'expired')
  else
    return false
  end
  return true
end

-- A task that lost two holders runs alone: it waits until this process has nothing in hand.
local function must_wait(task) return task.losses >= 2 and call.held + #tasks > 0 end

-- The entry of an id that is pending; a pending id whose entry is gone is forgotten.
local function pending_entry(level, entry_id)
  local found = redis.call('XRANGE', KEYS[level], entry_id, entry_id)[1]
  if found then return read_entry(level, entry_id, found[2]) end
  redis.call('XACK', KEYS[level], GROUP, entry_id)
end

-- The other levels have no entry, neither new nor pending, and are passed by; not so by a look for
-- ended leases, so that a group that is gone is missed.
local filled = {}
local function is_filled(level) return redis.call('XLEN', KEYS[level]) > 0 end
for level = 1, 10 do if call.reap or is_filled(level) then filled[#filled + 1] = level end end

-- 1. What an earlier take gave to this process, and whose answer was lost: the same attempt.
local alone = false
for _, level in ipairs((given ~= '' or not call.number) and filled or {}) do
  for _, pending in ipairs(redis.call('XPENDING', KEYS[level], GROUP, '-', '+', 10000,
                                      call.consumer)) do
    local entry = not is_known(level, pending[1], pending[4]) and pending_entry(level, pending[1])
    if entry and not is_settled(entry, false) then
      redis.call('XCLAIM', KEYS[level], GROUP, call.consumer, 0, entry.id, 'JUSTID')
      alone = hand_over(entry, entry.task.status == 'running') or alone
    end
  end
end
if redis.call('EXISTS', KEYS[13]) == 1 then return {'paused', tasks, 0, {}, ended} end
if alone then return {'ours', tasks, 0, {}, ended} end

-- 2. One entry whose lease has ended. Returns stop when nothing after it may be taken now.
local function redeliver(level, entry_id)
  local entry = pending_entry(level, entry_id)
  if not entry or is_settled(entry, true) then return nil end
  local task = entry.task
  local is_lost = task.status == 'running'
  if is_lost then
    if task.attempt >= (tonumber(entry.values[12]) or 0) then
      acknowledge(KEYS[level], entry_id)
      fail_for_good(task.task_id, KEYS[12], {
        error_class = 'WorkerLost', retryable = 0, worker_id = call.worker_id,
        error_message = 'the worker of the last attempt was lost'})
      return nil
    end
    task.losses, task.attempt = task.losses + 1, task.attempt + 1
  end
  if must_wait(task) then return 'blocked' end
  redis.call('XCLAIM', KEYS[level], GROUP, call.consumer, 0, entry_id, 'RETRYCOUNT', task.attempt,
             'JUSTID')
  if is_lost then redis.call('HSET', task.key, 'attempt', task.attempt, 'losses', task.losses) end
  return hand_over(entry, false)
end

-- 3. One entry that was never read before.
local function accept(level, entry_id, flat)
  local entry = read_entry(level, entry_id, flat)
  local task = entry.task
  local is_again = task.status == 'running' and task.entry_id == entry_id
  if is_again then
    -- the group was made anew: the entry goes back to its holder, with a fresh lease; to this
    -- process too, if an answer was lost
    local holder = redis.call('HGET', task.key, 'holder')
    redis.call('XCLAIM', KEYS[level], GROUP, holder, 0, entry_id, 'JUSTID')
    if holder ~= call.consumer or is_known(level, entry_id, task.attempt) then return nil end
  end
  if is_settled(entry, not is_again) then return nil end
  if not is_again and must_wait(task) then return 'blocked' end
  return hand_over(entry, is_again)
end

-- An outage counts as idle time, so until one lease after the server's start no lease counts as
-- ended: holders renew first. Its uptime is a difference of whole seconds, and so may be told up to
-- one second too long. What was released waits anyway.
local uptime_s
local function server_is_young()
  uptime_s = uptime_s or string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  return (uptime_s - 1) * 1000 < call.lease_ms
end

local function take_ended(level)
  local from = '-'
  while #tasks < call.room do
    local found = redis.call('XPENDING', KEYS[level], GROUP, 'IDLE', call.lease_ms, from, '+', 100)
    if #found == 0 then return nil end
    for _, pending in ipairs(found) do
      from = '(' .. pending[1]
      local is_mine = pending[2] == call.consumer and is_known(level, pending[1], pending[4])
      if pending[2] == RELEASED or call.reap and not is_mine and not server_is_young() then
        local stop = redeliver(level, pending[1])
        if stop then return stop end
        if #tasks >= call.room then return nil end
      end
    end
  end
end

local function take_new(level)
  while #tasks < call.room do
    local read = redis.call('XREADGROUP', 'GROUP', GROUP, call.consumer, 'COUNT',
                            call.room - #tasks, 'STREAMS', KEYS[level], '>')
    if not read then return nil end
    local stop
    for _, entry in ipairs(read[1][2]) do
      local is_over = stop
      stop = stop or accept(level, entry[1], entry[2])
      if is_over or stop == 'blocked' then set_waiting(KEYS[level], entry[1]) end
    end
    if stop then return stop end
  end
end

local stop
for _, level in ipairs(filled) do
  if call.reap or pending_of(KEYS[level], RELEASED, 1)[1] then stop = take_ended(level) end
  stop = stop or take_new(level)
  if stop or #tasks >= call.room then break end
end

local last_ids = {}
if not stop and #tasks < call.room then
  for level = 1, 10 do last_ids[level] = '0-0' end  -- where there is no entry, any will be new
  for _, level in ipairs(filled) do
    for _, group in ipairs(is_filled(level) and redis.call('XINFO', 'GROUPS', KEYS[level]) or {}) do
      group = fields_of(group)
      if group.name == GROUP then last_ids[level] = group['last-delivered-id'] end
    end
  end
end
if call.number and #tasks > 0 then
  local ids = {}
  for place, task in ipairs(tasks) do ids[place] = task[1] .. ':' .. task[2] .. ' ' end
  redis.call('HSET', KEYS[11], 'take', call.number, 'given', table.concat(ids))
end
return {'ours', tasks, stop == 'blocked' and 1 or 0, last_ids, ended}
