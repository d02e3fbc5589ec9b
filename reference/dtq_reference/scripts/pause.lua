#!lua flags=allow-oom
-- Pause or resume a queue.
-- KEYS  1 the queue's pause; 2 audit
-- ARGV  map: queue, paused, actor, request_id
-- returns 1 if that changed anything, else 0

if (redis.call('EXISTS', KEYS[1]) == 1) == call.paused then return 0 end
if call.paused then redis.call('SET', KEYS[1], 1) else redis.call('DEL', KEYS[1]) end
audit(KEYS[2], call.paused and 'pause' or 'resume', '')
publish('CONFIGURATION_CHANGED', {queue = call.queue}, {paused = call.paused})
return 1
