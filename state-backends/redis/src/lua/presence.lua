-- What is known of one shard, in one line: head or '-', running, end of its lease, sequence number, last take
-- (request or 0, first ticket, count), label. The rules are those of rules/presence.rs.

local function parse_presence(line)
  local head, running, expires_at, sequence, request, first, count, label =
    string.match(line, '^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  if not head or head ~= '-' and not whole(head) then
    return nil
  end
  local presence = {
    head = tonumber(head), running = tonumber(running), expires_at = tonumber(expires_at), sequence = tonumber(sequence),
    label = label,
  }
  if request ~= '0' then
    presence.last_take = { request = tonumber(request), first = tonumber(first), count = tonumber(count) }
  end
  return presence
end

local function line_of(presence)
  local take = presence.last_take or { request = 0, first = 0, count = 0 }
  return table.concat({
    presence.head and text(presence.head) or '-', text(presence.running), text(presence.expires_at),
    text(presence.sequence), text(take.request), text(take.first), text(take.count), presence.label,
  }, ' ')
end

local function find_presence(id)
  local line = redis.call('HGET', SHARDS, id)
  return line and parse_presence(line) or nil
end

local function keep_presence(record, id, before, presence)
  record.running = record.running - (before and before.running or 0) + presence.running
  redis.call('HSET', SHARDS, id, line_of(presence))
  redis.call('ZADD', LEASES, text(presence.expires_at), id)
  if presence.head then
    redis.call('ZADD', HEADS, text(presence.head), id)
  elseif before and before.head then
    redis.call('ZREM', HEADS, id)
  end
end

local function drop_presence(record, id, before)
  record.running = sub(record.running, before.running)
  redis.call('HDEL', SHARDS, id)
  redis.call('ZREM', LEASES, id)
  redis.call('ZREM', HEADS, id)
end

-- Whether as many jobs run as may, if it is `running`.
local function is_full(record, running)
  return record.max_running ~= nil and running >= record.max_running
end

-- Slots went by while nothing could start and nobody missed them: distances count from now.
local function count_slots_from(record, now)
  if record.free_at < now then
    record.free_at = now
    break_line(record, add(record.current, 1))
  end
end

-- Forgets the shards whose lease has ended, but for `me`, who just spoke.
local function expire(record, me, now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', text(now))) do
    if id ~= me then
      local presence = find_presence(id) or { running = 0, head = 0 }
      drop_presence(record, id, presence)
      record.fresh = true
      if presence.head then
        record.gaps_until = record.ticket
      end
    end
  end
end

-- The first of an index that is not `me`: shard and score. Shards of one score come by id.
local function first_other(index, me)
  local found = redis.call('ZRANGE', index, 0, 1, 'WITHSCORES')
  local at = found[1] == me and 3 or 1
  return found[at], tonumber(found[at + 1] or '')
end

