#!lua flags=no-writes
-- Read at one instant: several commands that change nothing, one after the other.
-- KEYS  all that the commands name
-- ARGV  map: commands, a list of lists
-- returns their replies; nil for one that failed, as XPENDING does where there is no group

local replies = {}
for place, command in ipairs(call.commands) do
  local reply = redis.pcall(unpack(command))
  replies[place] = not (type(reply) == 'table' and reply.err) and reply
end
return replies
