-- The other shards: forgets those whose lease has ended, and finds out who waits in front.

local my_lease = ' ' .. ME
local others = known and shards - 1 or shards

-- When the next of their leases ends; nil if the index does not have it.
local function find_next_end()
  local nearest = redis.call('ZRANGE', INDEX, max(shards - 2, 0), shards - 1, 'WITHSCORES')
  local at = #nearest - 1
  if nearest[at] == my_lease then
    at = at - 2
  end
  local ends = nearest[at] and -1 - nearest[at + 1]
  return ends and ends >= 0 and ends or nil
end

local was_full = running >= limit
-- A server that evicts keys may have taken the index.
local torn = false
while others > 0 and next_end <= now and not torn do
  local ends = find_next_end()
  torn = not ends
  next_end = ends or next_end
  if ends and ends <= now then
    -- In portions, as unpack() takes only so many.
    local dead, leases = {}, redis.call('ZRANGEBYSCORE', INDEX, -1 - now, -1, 'LIMIT', 0, 1000)
    for _, lease in ipairs(leases) do
      if lease ~= my_lease then
        dead[#dead + 1] = string.sub(lease, 2)
      end
    end
    for _, presence in ipairs(redis.call('HMGET', QUEUE, unpack(dead))) do
      -- One that is not there may have had a head.
      local its_head, its_running = 0, 0
      if presence and #presence >= PRESENCE_SIZE then
        its_head, its_running = struct.unpack('<dd', presence)
      end
      running = sub(running, its_running)
      if its_head >= 0 then
        gaps_until = ticket
      end
    end
    redis.call('HDEL', QUEUE, unpack(dead))
    redis.call('ZREM', INDEX, unpack(dead))
    for i, id in ipairs(dead) do
      dead[i] = ' ' .. id
    end
    redis.call('ZREM', INDEX, unpack(dead))
    shards, others = sub(shards, #dead), sub(others, #dead)
  end
end

-- The lowest of their heads, and whose it is: of shards with the same, the first by id.
local first_head, first_shard = math.huge, ''
if others > 0 then
  local lowest = redis.call('ZRANGE', INDEX, shards, shards + 1, 'WITHSCORES')
  local at = lowest[1] == ME and 3 or 1
  if lowest[at] then
    first_head, first_shard = lowest[at + 1] + 0, lowest[at]
  end
else
  next_end = 2^53 - 1
end

