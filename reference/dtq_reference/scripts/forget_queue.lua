#!lua flags=allow-oom
-- Remove the name and the streams of a queue in which nothing is left.
-- KEYS  1-10 streams; 11 depth of the schedule by queue; 12 queues
-- ARGV  map: queue
-- returns 1 if it was removed, 0 if something is left in it

for level = 1, 10 do if redis.call('XLEN', KEYS[level]) > 0 then return 0 end end
if redis.call('HEXISTS', KEYS[11], call.queue) == 1 then return 0 end
for level = 1, 10 do redis.call('DEL', KEYS[level]) end
redis.call('SREM', KEYS[12], call.queue)
return 1
