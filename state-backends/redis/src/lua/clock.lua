-- The state's clock and the name of the server, and rules/clock.rs.

local CLOCK_TOLERANCE = 1000000

local function read_clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Which server process this is; '' where the user may not know it.
local function read_incarnation()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
end

-- Takes notice of the time: the instant to reckon with, and by how much the clock was stepped back.
local function arrive(record, now)
  local back = sub(record.seen_at, now)
  if back > CLOCK_TOLERANCE then
    for _, field in ipairs(INSTANTS) do
      record[field] = sub(record[field], back)
    end
    break_line(record, add(record.current, 1))
  else
    back = 0
  end
  record.seen_at = math.max(record.seen_at, now)
  return record.seen_at, back
end

-- The leases move with the clock. This is the one command whose work grows with the number of shards.
local function move_leases(back)
  local shards = back > 0 and redis.call('HGETALL', SHARDS) or {}
  for i = 1, #shards, 2 do
    local presence = parse_presence(shards[i + 1])
    if presence then
      presence.expires_at = sub(presence.expires_at, back)
      redis.call('HSET', SHARDS, shards[i], line_of(presence))
      redis.call('ZADD', LEASES, text(presence.expires_at), shards[i])
    end
  end
end

