-- How a record is kept: a hash of its fields, a hash of presences by shard id, and two indexes of the presences by head
-- and by end of lease, so that no command looks at all shards. All four keys are in one hash slot.

local HEADER, SHARDS, HEADS, LEASES = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local VERSION = 1
local INSTANTS = { 'free_at', 'held_until', 'lifted_at', 'seen_at' }
-- `running` is the sum over the presences.
local NUMBERS = {
  'interval', 'revision', 'ticket', 'current', 'free_at', 'held_until', 'line_from', 'gaps_until', 'longest_lead', 'lifted_at',
  'seen_at', 'running',
}
local FIELDS = { 'version', 'incarnation', 'max_running', 'paused', unpack(NUMBERS) }
-- 366 days in microseconds.
local LONGEST_INTERVAL = 366 * 24 * 3600 * 1000000
-- A second.
local LONGEST_LEAD = 1000000
-- No lease is longer than an hour.
local LONGEST_LEASE_MS = 3600 * 1000

-- What a script returns instead of a reply when it did nothing.
local function refusal(kind, detail)
  return { kind, detail or '' }
end

-- The first command that the user may not run, so that no script ends halfway. Redis before 7 cannot tell.
local function denied()
  local commands = {
    { 'HMGET', HEADER, 'version' }, { 'EXISTS', HEADER, SHARDS, HEADS, LEASES }, { 'PTTL', HEADER },
    { 'HSET', HEADER, 'version', '1' },
    { 'HGET', SHARDS, 'id' }, { 'HGETALL', SHARDS }, { 'HLEN', SHARDS }, { 'HDEL', SHARDS, 'id' },
    { 'ZCARD', HEADS }, { 'ZCOUNT', HEADS, '0', '1' }, { 'ZRANGE', HEADS, '0', '1' }, { 'ZADD', HEADS, '1', 'id' },
    { 'ZREM', HEADS, 'id' }, { 'ZRANGEBYSCORE', LEASES, '0', '1' }, { 'DEL', SHARDS, HEADS, LEASES },
    { 'PEXPIRE', LEASES, '1' }, { 'PERSIST', LEASES }, { 'TIME' },
  }
  for _, command in ipairs(redis.acl_check_cmd and commands or {}) do
    if not redis.acl_check_cmd(unpack(command)) then
      return refusal('denied', command[1])
    end
  end
  return nil
end

local function trouble(answer)
  if type(answer) ~= 'table' or not answer.err then
    return nil
  end
  if string.find(answer.err, 'WRONGTYPE', 1, true) then
    return refusal('foreign', 'a key holds another type of value')
  end
  return denied() or answer
end

local function new_record(interval, max_running)
  local record = { incarnation = '', max_running = max_running, paused = false, stored = {}, loaded = {}, fresh = true }
  for _, field in ipairs(NUMBERS) do
    record[field] = 0
  end
  record.interval = interval
  record.revision = 1
  return record
end

-- The record, or nil; and a refusal, if what is stored is not a record that can be read.
local function load_record()
  local answers = { redis.pcall('HMGET', HEADER, unpack(FIELDS)) }
  answers[2] = redis.pcall('HLEN', SHARDS)
  answers[3] = redis.pcall('ZCARD', HEADS)
  answers[4] = redis.pcall('ZCARD', LEASES)
  for _, answer in ipairs(answers) do
    if trouble(answer) then
      return nil, trouble(answer)
    end
  end
  local values, shards, heads, leases = unpack(answers)
  -- What was there, as text and as numbers.
  local record = { stored = {}, loaded = {} }
  for i, field in ipairs(FIELDS) do
    record.stored[field] = values[i]
  end
  local stored = record.stored
  local version = whole(stored.version)
  if version and version > VERSION then
    return nil, refusal('newer', stored.version)
  elseif version ~= VERSION then
    if redis.call('EXISTS', HEADER) == 0 then
      return nil, nil
    end
    return nil, refusal('foreign', 'version is ' .. (version and stored.version or stored.version and 'no number' or 'missing'))
  end
  for _, field in ipairs(NUMBERS) do
    record[field] = whole(stored[field])
    if not record[field] then
      return nil, refusal('foreign', field .. ' is no number')
    end
    record.loaded[field] = record[field]
  end
  if not stored.incarnation or not stored.max_running or not stored.paused then
    return nil, refusal('foreign', 'a field is missing')
  elseif stored.max_running ~= '' and not whole(stored.max_running) then
    return nil, refusal('foreign', 'max_running is no number')
  elseif stored.paused ~= '0' and stored.paused ~= '1' then
    return nil, refusal('foreign', 'paused is neither 0 nor 1')
  end
  record.incarnation = stored.incarnation
  record.max_running = number(stored.max_running)
  record.paused = stored.paused == '1'
  if record.interval < 1 or record.interval > LONGEST_INTERVAL or record.max_running == 0
    or (record.max_running or 1) > 4294967295 then
    return nil, refusal('foreign', 'interval or max_running is out of range')
  elseif record.current > record.ticket then
    return nil, refusal('foreign', 'current is above ticket')
  elseif record.longest_lead > LONGEST_LEAD then
    return nil, refusal('foreign', 'longest_lead is out of range')
  end
  -- A server that evicts keys may have taken some of them: then whom they were about is not known any more.
  record.torn = shards ~= leases or heads > shards
  -- A key that comes back has no expiry yet.
  record.fresh = heads == 0 or shards == 0
  return record, nil
end

-- A script whose first write is a DEL is let through when memory is short, so none is sent in vain.
local function forget_all(record)
  if redis.call('EXISTS', SHARDS, HEADS, LEASES) > 0 then
    redis.call('DEL', SHARDS, HEADS, LEASES)
  end
  record.running = 0
  record.fresh = true
end

-- The keys outlive all that they reserve by the idle expiry. A paused queue is nobody's to forget.
local function set_expiry(record, now, idle_ms)
  local left = redis.call('PTTL', HEADER)
  if record.paused then
    if left >= 0 then
      for _, key in ipairs(KEYS) do
        redis.call('PERSIST', key)
      end
    end
    return
  end
  local reserved = math.max(record.free_at, record.held_until)
  local needed = math.ceil(sub(reserved, now) / 1000) + LONGEST_LEASE_MS + idle_ms
  if record.fresh or left < needed then
    -- An eighth more, so that not every command has to say it again.
    local ms = text(needed + math.ceil(idle_ms / 8))
    for _, key in ipairs(KEYS) do
      redis.call('PEXPIRE', key, ms)
    end
  end
end

-- Writes what changed, and brings `stored` up to date.
local function save_record(record, now, idle_ms)
  local stored, changed = record.stored, {}
  local function put(field, value)
    if stored[field] ~= value then
      stored[field] = value
      changed[#changed + 1] = field
      changed[#changed + 1] = value
    end
  end
  put('version', text(VERSION))
  put('incarnation', record.incarnation)
  put('max_running', text(record.max_running))
  put('paused', record.paused and '1' or '0')
  -- To make text of a number costs more than all else here.
  for _, field in ipairs(NUMBERS) do
    if record[field] ~= record.loaded[field] then
      put(field, text(record[field]))
    end
  end
  if #changed > 0 then
    redis.call('HSET', HEADER, unpack(changed))
  end
  set_expiry(record, now, idle_ms)
end

-- What a shard is to remember, read off the saved record, and what it echoed. It does not echo how many shards there are.
local function memory_of(record)
  local stored = record.stored
  return {
    stored.seen_at, stored.ticket, stored.current, stored.free_at, stored.revision, stored.interval, stored.max_running,
    stored.paused, stored.held_until, stored.longest_lead, text(redis.call('HLEN', SHARDS)),
  }
end

local function memory_from(first)
  local function at(place)
    return number(ARGV[first + place])
  end
  return {
    at = at(0), sequence = at(1), ticket = at(2), current = at(3), free_at = at(4), revision = at(5),
    interval = at(6), max_running = at(7), paused = at(8) == 1, held_until = at(9),
    longest_lead = at(10),
  }
end

-- From now on only tickets from `first` on own the slot that their distance gives them once they are overtaken.
local function break_line(record, first)
  record.line_from = math.max(record.line_from, first)
end

