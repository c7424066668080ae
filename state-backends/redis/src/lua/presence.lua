-- The shards that the record knows of. The rules are those of rules/presence.rs. From here on a script writes.

-- As many jobs may run at once.
local limit = max_running > 0 and max_running or math.huge

-- What was left of a queue that is lost. A script whose first write is a DEL is let through when memory is short, so none
-- is sent in vain.
if not found and redis.call('EXISTS', INDEX) == 1 then
  redis.call('DEL', INDEX)
end

-- Leases move with the clock. This is the one thing whose work grows with the number of shards.
if back > 0 and shards > 0 then
  local all = redis.call('HGETALL', QUEUE)
  for i = 1, #all, 2 do
    local id, presence = all[i], all[i + 1]
    if id ~= '' and #presence >= PRESENCE_SIZE then
      local ends = sub(struct.unpack('<d', presence, 17), back)
      presence = string.sub(presence, 1, 16) .. struct.pack('<d', ends) .. string.sub(presence, 25)
      redis.call('HSET', QUEUE, id, presence)
      redis.call('ZADD', INDEX, -1 - ends, ' ' .. id)
    end
  end
end

