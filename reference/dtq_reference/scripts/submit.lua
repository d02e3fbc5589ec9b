-- Accept tasks, each by itself. One sent again with the same task_id is answered as the first
-- time; that is looked at before its key, and its key before the queue's depth.
-- KEYS  1 schedule; 2 its depth by queue; 3 queues; 4 recent tasks; then ten streams, most urgent
--       first, for each queue
-- ARGV  map: max_depth, tasks: list of maps with place (of its queue in KEYS, from 1), task_id,
--       queue, task_type, payload, metadata, priority, max_attempts, timeout_ms, delay_ms, ttl_ms
--       (0: none), and perhaps idempotency_key, signature
-- returns {verdict, task_id, status} for each: accepted (queued | pending), again (the same, and it
-- was accepted before), duplicate (status of the stored task task_id), in_progress (of task_id),
-- or full (status: the depth)

local depths = {}  -- of the queues that were counted, as this step has left them
local function depth_of(task)
  local depth = depths[task.queue] or tonumber(redis.call('HGET', KEYS[2], task.queue) or 0)
  for level = 1, depths[task.queue] and 0 or 10 do
    depth = depth + redis.call('XLEN', KEYS[4 + (task.place - 1) * 10 + level])
  end
  return depth
end

-- Whose the key is: nil if nobody's, or only a vanished task's.
local function owner_of_key(task)
  local record = redis.call('GET', record_key(task))
  if not record then return nil end
  local owner = cjson.decode(record)
  owner.status = redis.call('HGET', call.task_prefix .. owner.task_id, 'status')
  return owner.status and owner
end

local function accept(task, status)
  -- first what is looked for most often: a small hash is searched from its start
  local about = {'status', status, 'attempt', 1, 'created_at', NOW, 'task_id', task.task_id,
                 'queue', task.queue, 'task_type', task.task_type, 'payload', task.payload,
                 'metadata', task.metadata, 'priority', task.priority,
                 'max_attempts', task.max_attempts, 'timeout_ms', task.timeout_ms,
                 'available_at', NOW + task.delay_ms}
  local function add(name, value) about[#about + 1], about[#about + 2] = name, value end
  if task.ttl_ms > 0 then
    add('ttl_ms', task.ttl_ms)
    add('expires_at', NOW + task.ttl_ms)
  end
  if task.signature then add('signature', task.signature) end
  if task.idempotency_key then
    add('idempotency_key', task.idempotency_key)
    redis.call('SET', record_key(task), idempotency_record(task.task_id, 'processing'))
  end
  task.attempt = 1
  if status == 'queued' then
    add('entry_id', enqueue(KEYS[4 + (task.place - 1) * 10 + 10 - task.priority], task))
    publish('TASK_QUEUED', task)
  else
    schedule(KEYS[1], KEYS[2], task, NOW + task.delay_ms)
  end
  redis.call('HSET', call.task_prefix .. task.task_id, unpack(about))
  redis.call('SADD', KEYS[3], task.queue)
  redis.call('ZADD', KEYS[4], NOW, task.task_id)
end

local function submit(task)
  local known = load_task(task.task_id, 'created_at', 'available_at')
  if known.created_at then
    return {'again', task.task_id,
            known.available_at == known.created_at and 'queued' or 'pending'}
  end
  local owner = task.idempotency_key and owner_of_key(task)
  if owner then
    return {owner.state == 'processing' and 'in_progress' or 'duplicate', owner.task_id,
            owner.status}
  end
  local depth = depth_of(task)
  if depth >= call.max_depth then return {'full', task.task_id, tostring(depth)} end
  local status = task.delay_ms > 0 and 'pending' or 'queued'
  accept(task, status)
  depths[task.queue] = depth + 1
  return {'accepted', task.task_id, status}
end

local answers = {}
for place, task in ipairs(call.tasks) do answers[place] = submit(task) end
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -10001)
return answers
