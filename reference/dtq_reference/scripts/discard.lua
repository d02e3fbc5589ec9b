#!lua flags=allow-oom
-- Throw dead letters away: one by its task's id, or the oldest. A task's hash stays
-- dead_lettered, says that it was discarded, and begins to expire.
-- KEYS  1 dead letters; 2 audit
-- ARGV  map: task_id ('' for the oldest), limit, action, actor, request_id
-- returns how many letters went

-- An orphan's letter has no hash that knows where it stands; then all are looked at.
local function letters()
  if call.task_id == '' then return redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', call.limit) end
  local letter_id = redis.call('HGET', call.task_prefix .. call.task_id, 'letter_id')
  return redis.call('XRANGE', KEYS[1], letter_id or '-', letter_id or '+')
end

local gone = 0
for _, letter in ipairs(letters()) do
  local task_id = fields_of(letter[2]).task_id or ''
  if call.task_id == '' or call.task_id == task_id then
    local key = drop_letter(KEYS[1], letter)
    if key then redis.call('HSET', key, 'discarded', NOW) end
    audit(KEYS[2], call.action, task_id)
    gone = gone + 1
  end
end
return gone
