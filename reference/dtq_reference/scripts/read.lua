#!lua flags=no-writes
-- Read at one instant: several commands that change nothing, one after the other.
-- KEYS  all that the commands name
-- ARGV  map: commands, a list of lists
-- returns their replies; nil for XPENDING where there is no group

local replies = {}
for place, command in ipairs(call.commands) do
  local reply = redis.pcall(unpack(command))
  local failed = type(reply) == 'table' and reply.err
  if failed and not string.find(failed, 'NOGROUP', 1, true) then return reply end
  replies[place] = not failed and reply
end
return replies
