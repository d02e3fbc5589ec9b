#!lua flags=allow-oom
-- Cancel a task: at once while it waits, its entry or its appointment gone in the same step; by
-- a request to its holder while it runs. Sent again it is answered with the state that it finds.
-- KEYS  1 stream of the task's priority; 2 schedule; 3 its depth by queue; 4 audit
-- ARGV  map: task_id, only_waiting (leave it alone while it runs), actor, request_id, action
-- returns {cancelled | requested | running | terminal | unknown, the status}

local task = load_task(call.task_id, 'status', 'queue', 'task_type', 'attempt', 'entry_id',
                       'idempotency_key', 'cancel_requested')
if not task.status then return {'unknown', ''} end
if STATE_OF_KEY[task.status] then return {'terminal', task.status} end
if task.status == 'running' then
  if call.only_waiting then return {'running', task.status} end
  if not task.cancel_requested then
    redis.call('HSET', task.key, 'cancel_requested', NOW)
    audit(KEYS[4], call.action, task.task_id)
  end
  return {'requested', task.status}
end
if task.status == 'queued' then acknowledge(KEYS[1], task.entry_id)
else unschedule(KEYS[2], KEYS[3], task) end
audit(KEYS[4], call.action, task.task_id)
return {'cancelled', finish(task, 'cancelled')}
