-- The script of a queue: a step of a shard, a change for all shards, or a read, by the rules of the
-- contract, whose files it names below (rules/*.rs).
--
-- One chunk whose parts share their locals: each run pays for every function that it defines.
-- luacheck: std lua51, read globals KEYS ARGV redis struct, max line length 120

-- Microseconds and tickets: integers from 0 to 2^53 - 1 that saturate at both ends, as in Rust. A
-- result beyond may be rounded, but never below the end.
local min, max = math.min, math.max

local function add(a, b)
  local sum = a + b
  return sum < 2^53 and sum or 2^53 - 1
end

local function sub(a, b)
  return a > b and a - b or 0
end

local function mul(a, b)
  local product = a * b
  return product < 2^53 and product or 2^53 - 1
end

-- Two keys in one hash slot.
--
-- QUEUE is a hash: field '' is the record, each other field the presence of the shard with that id.
-- INDEX is a sorted set of the presences. Below zero, each shard is listed by the end of its lease,
-- as its id after a blank, the next end closest to zero. Above zero, each shard with a head is
-- listed by that head. One command moves a shard in both, and the lowest head follows as many
-- leases as there are shards.
--
-- Numbers are packed as doubles: text would cost more than all else here.
local QUEUE, INDEX = KEYS[1], KEYS[2]
local VERSION = 3
-- The version and the numbers below; the meters except the first (interval, burst, `tat`); the
-- incarnation as text.
local RECORD, RECORD_SIZE = '<dddddddddddddddddddddd', 176
local METER, METER_SIZE = '<ddd', 24
-- Head (-1: none), running, end of the lease, sequence number, last take (request or 0, first
-- ticket, count), weight of the head, number of remembered grants; these grants (ticket and slot);
-- the label as text.
local PRESENCE, PRESENCE_SIZE, WEIGHT_AT, GRANTED_AT = '<ddddddddd', 72, 57, 65
local GRANT, GRANT_SIZE = '<dd', 16

-- ARGV: the name of the server; packed numbers; a shard and its label. A change has '' for the
-- shard, then the change and the policy for an existing queue. A read has only the name of the
-- server.
local ME = ARGV[3] or ''
local IS_STEP, CHANGE, ON_EXISTING = ME ~= '', ME == '' and ARGV[4], ARGV[5]

-- The record. The first meter is separate, since there is rarely another one; `more` is the number
-- of the others. `max_running` 0: unlimited; `paused` is 0 or 1; `running` and `shards` are the sum
-- and the number of the presences; `heavy` counts presences with a head above weight 1. No lease
-- ends before `next_end`. The keys expire at `kept_until`; 0: never.
local interval, burst, tat, more, intervals, bursts, tats = 0, 1, 0, 0, {}, {}, {}
local last_slot, max_running, paused, revision = 0, 0, 0, 0
local ticket, current, held_until, line_from, gaps_until = 0, 0, 0, 0, 0
local longest_lead, lifted_at, seen_at, running, shards, heavy, next_end, kept_until = 0, 0, 0, 0, 0, 0, 2^53 - 1, 0
local incarnation = ''

-- A refusal is a kind and details instead of a packed reply. Nothing has been written then.
local stored = redis.call('HMGET', QUEUE, '', ME)
local found = stored[1]
if found then
  local version
  if #found >= RECORD_SIZE then
    version, interval, burst, tat, more, last_slot, max_running, paused, revision, ticket, current, held_until,
      line_from, gaps_until, longest_lead, lifted_at, seen_at, running, shards, heavy, next_end, kept_until
      = struct.unpack(RECORD, found)
  end
  if version ~= VERSION then
    version = #found >= 8 and struct.unpack('<d', found) or 0
    if version > VERSION and version % 1 == 0 and version < 2^53 then
      return { 'newer', version, VERSION }
    end
    return { 'foreign', 'the record has no version' }
  end
  local fractions = interval % 1 + burst % 1 + tat % 1 + more % 1 + last_slot % 1 + max_running % 1 + paused % 1
    + revision % 1 + ticket % 1 + current % 1 + held_until % 1 + line_from % 1 + gaps_until % 1 + longest_lead % 1
    + lifted_at % 1 + seen_at % 1 + running % 1 + shards % 1 + heavy % 1 + next_end % 1 + kept_until % 1
  if fractions ~= 0
    or min(tat, more, last_slot, max_running, paused, revision, ticket, current, held_until, line_from, gaps_until,
      longest_lead, lifted_at, seen_at, running, shards, heavy, next_end, kept_until) < 0
    or max(tat, last_slot, revision, ticket, held_until, line_from, gaps_until, lifted_at, seen_at, running, shards,
      heavy, next_end, kept_until) >= 2^53
  then
    return { 'foreign', 'a number is not whole or out of range' }
  elseif interval < 1 or interval > 31622400000000 or max_running > 4294967295 then
    return { 'foreign', 'interval or max_running is out of range' }
  elseif burst < 1 or burst > 1000000 or more > 7 or #found < RECORD_SIZE + METER_SIZE * more then
    return { 'foreign', 'a meter is out of range' }
  elseif paused > 1 then
    return { 'foreign', 'paused is neither 0 nor 1' }
  elseif current > ticket then
    return { 'foreign', 'current is above ticket' }
  elseif longest_lead > 1000000 then
    return { 'foreign', 'longest_lead is out of range' }
  end
  for n = 1, more do
    local i, b, t = struct.unpack(METER, found, RECORD_SIZE + METER_SIZE * (n - 1) + 1)
    if (i + b + t) % 1 ~= 0 or i <= (intervals[n - 1] or interval) or b <= (bursts[n - 1] or burst) or t < 0
      or i > 31622400000000 or b > 1000000 or t >= 2^53
    then
      return { 'foreign', 'a meter is out of range' }
    end
    intervals[n], bursts[n], tats[n] = i, b, t
  end
  incarnation = string.sub(found, RECORD_SIZE + METER_SIZE * more + 1)
elseif redis.call('EXISTS', QUEUE) == 1 then
  return { 'foreign', 'it has no record' }
else
  -- An index of another type is an error before anything is written.
  redis.call('ZCARD', INDEX)
end

-- See meter.rs.

local function each(change)
  tat = change(interval, burst, tat)
  for n = 1, more do
    tats[n] = change(intervals[n], bursts[n], tats[n])
  end
end

local function quotient(a, b)
  return (a - math.fmod(a, b)) / b
end

local function pack_more()
  local packed = ''
  for n = 1, more do
    packed = packed .. struct.pack(METER, intervals[n], bursts[n], tats[n])
  end
  return packed
end
local written_at = seen_at

-- The running limit, the number of rates, and the rates.
local function pack_settings()
  local packed = struct.pack('<dddd', max_running, more + 1, interval, burst)
  for n = 1, more do
    packed = packed .. struct.pack('<dd', intervals[n], bursts[n])
  end
  return packed
end

-- See clock.rs.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local step_back = 0
if seen_at - now > 1000000 then
  step_back = seen_at - now
  each(function(_, _, t)
    return sub(t, step_back)
  end)
  last_slot, held_until = sub(last_slot, step_back), sub(held_until, step_back)
  lifted_at, seen_at, next_end = sub(lifted_at, step_back), sub(seen_at, step_back), sub(next_end, step_back)
  line_from = max(line_from, add(current, 1))
end
if seen_at < now then
  seen_at = now
end
now = seen_at

-- A read returns the packed instant and numbers of the record, its incarnation, and the id and
-- presence of each shard; only 'ok' if the queue does not exist.
if not ARGV[2] then
  if not found then
    return { 'ok' }
  end
  local reply = {
    'ok',
    struct.pack('<ddddddddddddddddddc0', now, interval, burst, tat, more, last_slot, max_running, paused, revision,
      ticket, current, held_until, line_from, gaps_until, longest_lead, lifted_at, min(written_at, now), step_back,
      pack_more()),
    incarnation,
  }
  local all = redis.call('HGETALL', QUEUE)
  for i = 1, #all, 2 do
    if all[i] ~= '' then
      reply[#reply + 1] = all[i]
      reply[#reply + 1] = all[i + 1]
    end
  end
  return reply
end

-- The idle expiry, and the sender's memory of the record.
local IDLE, memory_at, memory_sequence, memory_ticket, memory_current, memory_revision, memory_max_running,
  memory_paused, memory_held_until, memory_longest_lead, memory_more, memory_interval, memory_burst, memory_tat
-- A step: 0: none; -1: no ticket. LOWEST is the first ticket that asks, HIGHEST the highest that
-- the shard holds. LATE_START and LATE_AT are a start that moves the next slot.
local SEQUENCE, LEASE, LEAD, LATE, RUNNING, GIVEN_UP, THEN, LOWEST, HIGHEST, REQUEST, COUNT, LATE_START, LATE_AT, ASKS,
  WEIGHTS
local REQUEUE = 1
-- A change. LIMIT 0: unlimited; -1: as stored. RATES is the number of rates; 0: as stored. HOLD is
-- also the minimum idle time of a queue to delete.
local LIMIT, HOLD, RATES
-- The remembered meters except the first start at METERS_AT. They are followed by the asks (ticket
-- and weight) and the weights of the take, or by the rates (interval and burst).
local METERS_AT, FIRST_ASK, RATES_AT

local known = stored[2]
local known_head, known_running, known_sequence, last_request, last_first, last_count = -1, 0, math.huge, 0, 0, 0
local known_weight = 1
-- Slots by ticket that the last reply granted, if it was lost: again.rs.
local unacknowledged = {}
-- Every change raises the revision.
local known_revision = revision
local is_new_queue, has_rates, is_set = false, nil, nil

-- All checks precede all writes.
if IS_STEP then
  IDLE, SEQUENCE, LEASE, LEAD, LATE, RUNNING, GIVEN_UP, THEN, LOWEST, HIGHEST, REQUEST, COUNT, LATE_START, LATE_AT,
    ASKS, WEIGHTS, memory_at, memory_sequence, memory_ticket, memory_current, memory_revision, memory_max_running,
    memory_paused, memory_held_until, memory_longest_lead, memory_more, memory_interval, memory_burst, memory_tat,
    FIRST_ASK = struct.unpack('<d ddddddddddddddd ddddddddddddd', ARGV[2])
  METERS_AT, FIRST_ASK = FIRST_ASK - METER_SIZE, FIRST_ASK + METER_SIZE * memory_more
  if known then
    local expires_at, granted
    if #known >= PRESENCE_SIZE then
      known_head, known_running, expires_at, known_sequence, last_request, last_first, last_count, known_weight, granted
        = struct.unpack(PRESENCE, known)
    end
    if not expires_at
      or (known_head + known_running + known_sequence + last_first + last_count + known_weight + granted) % 1 ~= 0
      or granted < 0 or #known < PRESENCE_SIZE + GRANT_SIZE * granted
    then
      return { 'foreign', 'the presence of a shard cannot be read' }
    elseif known_sequence >= SEQUENCE then
      return { 'superseded', known_sequence }
    end
    for n = 0, known_sequence > memory_sequence and step_back == 0 and granted - 1 or -1 do
      local its_ticket, slot = struct.unpack(GRANT, known, PRESENCE_SIZE + GRANT_SIZE * n + 1)
      unacknowledged[its_ticket] = slot
    end
  end
  local last = max(ticket, memory_ticket, HIGHEST)
  if COUNT > 2^53 - 1 - last then
    return { 'no-tickets-left', last }
  end
  if LEAD > longest_lead then
    longest_lead = LEAD
  end
else
  IDLE, LIMIT, HOLD, RATES, memory_at, memory_sequence, memory_ticket, memory_current, memory_revision,
    memory_max_running, memory_paused, memory_held_until, memory_longest_lead, memory_more, memory_interval,
    memory_burst, memory_tat, RATES_AT = struct.unpack('<d ddd ddddddddddddd', ARGV[2])
  METERS_AT, RATES_AT = RATES_AT - METER_SIZE, RATES_AT + METER_SIZE * memory_more
  function has_rates()
    local same = RATES == 0 or RATES == more + 1
    for n = 0, same and RATES - 1 or -1 do
      local i, b = struct.unpack('<dd', ARGV[2], RATES_AT + 16 * n)
      same = same and i == (intervals[n] or interval) and b == (bursts[n] or burst)
    end
    return same
  end
  function is_set()
    return has_rates() and (LIMIT < 0 or LIMIT == max_running)
  end
  -- Each shard opens its queue first: rights are checked here, so no run ends halfway. Redis before
  -- 7 cannot check them.
  if CHANGE == 'open' and redis.acl_check_cmd then
    for _, command in ipairs({
      { 'HMGET', QUEUE, '' }, { 'HGETALL', QUEUE }, { 'HSET', QUEUE, '', '' }, { 'HDEL', QUEUE, 'id' },
      { 'ZRANGE', INDEX, '0', '1' }, { 'ZRANGEBYSCORE', INDEX, '0', '1' }, { 'ZCOUNT', INDEX, '0', '1' },
      { 'ZADD', INDEX, '1', 'id' }, { 'ZREM', INDEX, 'id' }, { 'ZCARD', INDEX }, { 'EXISTS', QUEUE, INDEX },
      { 'DEL', QUEUE, INDEX }, { 'PEXPIRE', INDEX, '1' }, { 'PERSIST', INDEX }, { 'TIME' },
    }) do
      if not redis.acl_check_cmd(unpack(command)) then
        return { 'denied', command[1] }
      end
    end
  end
  -- An index of another type is an error before anything is written.
  redis.call('ZCARD', INDEX)
  is_new_queue = not found and CHANGE == 'open' and memory_revision == 0 and RATES > 0
  if found and CHANGE == 'open' and ON_EXISTING == 'fail' and not is_set() then
    local refusal = { 'conflict', max_running, interval, burst }
    for n = 1, more do
      refusal[#refusal + 1] = intervals[n]
      refusal[#refusal + 1] = bursts[n]
    end
    return refusal
  end

  -- Nothing else of this script runs then: delete.rs.
  if CHANGE == 'delete' then
    if not found then
      return { 'not-found' }
    end
    if ON_EXISTING ~= 'forced' then
      local users, all = { 'in-use' }, redis.call('HGETALL', QUEUE)
      for i = 1, #all, 2 do
        local id, its = all[i], all[i + 1]
        if id ~= '' and #its < PRESENCE_SIZE then
          return { 'foreign', 'the presence of a shard cannot be read' }
        elseif id ~= '' and sub(struct.unpack('<d', its, 17), step_back) > now then
          users[#users + 1] = id
          users[#users + 1] = string.sub(its, PRESENCE_SIZE + GRANT_SIZE * struct.unpack('<d', its, GRANTED_AT) + 1)
        end
      end
      if #users > 1 then
        return users
      end
    end
    local ahead, idle = sub(max(tat, held_until, unpack(tats)), now), sub(now, written_at)
    if ON_EXISTING == 'idle' and (paused == 1 or ahead > 0 or idle < HOLD) then
      return { 'not-idle', paused, ahead, idle }
    end
    redis.call('DEL', QUEUE, INDEX)
    redis.pcall('PUBLISH', QUEUE .. ':changes', '')
    return struct.pack('<dddddddddddddc0', now, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, pack_settings())
  end
end

-- '' if this user may not know the process. A client names its server, or '?'.
local server = ARGV[1]
if server == '?' then
  local info = redis.pcall('INFO', 'server')
  server = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
end

-- Sets the rates at `at`, each of `size` bytes (meter.rs). The debt of a meter is carried over in
-- slots, counted from the last slot, or from now if that is later; a new meter among others starts
-- with the largest debt. A weight above the burst is owed as it is, by the first meter in any case.
-- No slot comes before the last one.
local function set_rates(at, size, count)
  local old, most, most_yet, from = {}, 1, 1, min(now, last_slot)
  local function owes(i, t, since)
    local owed = sub(t, since)
    return max(quotient(owed, i) + (owed % i > 0 and 1 or 0), 1)
  end
  for n = 0, interval > 0 and more or -1 do
    local i, b, t = intervals[n] or interval, bursts[n] or burst, tats[n] or tat
    old[n] = { i, b, t, owes(i, t, last_slot), owes(i, t, from) }
    most, most_yet = max(most, old[n][4]), max(most_yet, old[n][5])
  end
  for n = 0, count - 1 do
    local i, b = struct.unpack('<dd', ARGV[2], at + size * n)
    local as_many = count == more + 1
    local earlier = (as_many or n == 0) and old[n]
    local unpaid = earlier and earlier[4] > earlier[2] and earlier[4] or 0
    local carried = as_many and earlier and earlier[4] or most
    local yet = as_many and earlier and earlier[5] or most_yet
    local t = 0
    if old[0] then
      t = add(last_slot, mul(i, max(min(carried, b), unpaid)))
      t = max(t, add(from, mul(i, min(yet, b))))
    end
    for m = 0, old[0] and more or -1 do
      if old[m][1] == i and old[m][2] == b then
        t = old[m][3]
      end
    end
    if n == 0 then
      interval, burst, tat = i, b, t
    else
      intervals[n], bursts[n], tats[n] = i, b, t
    end
  end
  for n = count, more do
    intervals[n], bursts[n], tats[n] = nil, nil, nil
  end
  more = count - 1
  if last_slot > now then
    tat = max(tat, add(last_slot, mul(interval, burst - 1)))
  end
end

if is_new_queue then
  set_rates(RATES_AT, 16, RATES)
  max_running, revision, incarnation = max(LIMIT, 0), 1, server
  memory_at, memory_ticket, memory_current = 0, 0, 0
elseif not found and memory_revision == 0 then
  return { 'not-found' }
elseif not found then
  set_rates(METERS_AT, METER_SIZE, memory_more + 1)
  max_running = memory_max_running
end

-- Restores a lost or rewound record from the shards' memories: loss.rs.

local function is_ahead()
  if memory_interval == interval and memory_burst == burst and memory_tat > tat then
    return true
  end
  for n = 1, min(more, memory_more) do
    local i, b, t = struct.unpack(METER, ARGV[2], METERS_AT + METER_SIZE * n)
    if i == intervals[n] and b == bursts[n] and t > tats[n] then
      return true
    end
  end
  return false
end

local restarted = incarnation ~= server
local same_clock = memory_at <= now + 1000000
local lost = memory_ticket > ticket
  or memory_current > current
  or memory_revision > revision
  or (same_clock and memory_revision == revision and is_ahead())
  or known_sequence < memory_sequence
if restarted or lost then
  if memory_revision > revision then
    set_rates(METERS_AT, METER_SIZE, memory_more + 1)
    max_running, paused, revision = memory_max_running, memory_paused, memory_revision
    if same_clock then
      held_until = memory_held_until
    end
  end
  if same_clock and memory_revision == revision then
    local n = -1
    each(function(i, b, t)
      n = n + 1
      if n > memory_more then
        return t
      end
      local its_interval, its_burst, its_tat = struct.unpack(METER, ARGV[2], METERS_AT + METER_SIZE * n)
      return i == its_interval and b == its_burst and max(t, its_tat) or t
    end)
  end
  ticket, current = max(ticket, memory_ticket), max(current, memory_current)
  longest_lead = max(longest_lead, memory_longest_lead)
  if restarted or not same_clock or memory_at >= lifted_at then
    -- Bounds the slots that may have been granted without being reported.
    local horizon, granted = add(now, longest_lead), math.huge
    local unseen = sub(horizon, same_clock and memory_at or 0)
    each(function(i, b, t)
      granted = min(granted, b + quotient(unseen, i) + (unseen % i > 0 and 1 or 0))
      return t
    end)
    each(function(i, b, t)
      local used = min(quotient(sub(t, horizon), i) + 1 + granted, b)
      return max(t, add(horizon, mul(i, used)))
    end)
    last_slot = max(last_slot, horizon)
    lifted_at = now
  end
  if lost then
    gaps_until = ticket
  end
  line_from = max(line_from, add(ticket, 1))
  incarnation = server
end

-- After slots passed while nothing could start and no shard missed them, distances count from now.
-- Earlier use is paid off.
local function count_slots_from_now()
  local moved = false
  each(function(_, _, t)
    moved = moved or t < now
    return max(t, now)
  end)
  if moved then
    last_slot = max(last_slot, now)
    line_from = max(line_from, add(current, 1))
  end
end

-- See presence.rs. Writes start here.
local limit = max_running > 0 and max_running or math.huge

-- Redis lets a script run when memory is short if its first write is a DEL, so the DEL of a lost
-- queue's remains is sent only if needed.
if not found and redis.call('EXISTS', INDEX) == 1 then
  redis.call('DEL', INDEX)
end

-- Leases move with the clock, and grants are forgotten. Only this work grows with the number of
-- shards.
if step_back > 0 and shards > 0 then
  local all = redis.call('HGETALL', QUEUE)
  for i = 1, #all, 2 do
    local id, presence = all[i], all[i + 1]
    if id ~= '' and #presence >= PRESENCE_SIZE then
      local ends = sub(struct.unpack('<d', presence, 17), step_back)
      local label = PRESENCE_SIZE + GRANT_SIZE * struct.unpack('<d', presence, GRANTED_AT) + 1
      presence = string.sub(presence, 1, 16) .. struct.pack('<d', ends) .. string.sub(presence, 25, GRANTED_AT - 1)
        .. struct.pack('<d', 0) .. string.sub(presence, label)
      redis.call('HSET', QUEUE, id, presence)
      redis.call('ZADD', INDEX, -1 - ends, ' ' .. id)
    end
  end
end

-- The reply begins with the sender's new memory.
local presence, is_new, reply
if IS_STEP then
  -- Shards whose lease has ended are removed: presence.rs.
  local my_lease = ' ' .. ME
  local others = known and shards - 1 or shards

  -- Nil if the index does not have it.
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
  -- A server that evicts keys may have removed the index.
  local is_index_damaged = false
  while others > 0 and next_end <= now and not is_index_damaged do
    local ends = find_next_end()
    is_index_damaged = not ends
    next_end = ends or next_end
    if ends and ends <= now then
      -- In parts, since unpack() is limited.
      local dead, leases = {}, redis.call('ZRANGEBYSCORE', INDEX, -1 - now, -1, 'LIMIT', 0, 1000)
      for _, lease in ipairs(leases) do
        if lease ~= my_lease then
          dead[#dead + 1] = string.sub(lease, 2)
        end
      end
      for _, other in ipairs(redis.call('HMGET', QUEUE, unpack(dead))) do
        -- A missing presence may have had a head.
        local its_head, its_running, its_weight = 0, 0, 1
        if other and #other >= PRESENCE_SIZE then
          its_head, its_running = struct.unpack('<dd', other)
          its_weight = struct.unpack('<d', other, WEIGHT_AT)
        end
        running, heavy = sub(running, its_running), sub(heavy, its_weight > 1 and 1 or 0)
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

  -- Of equal heads, the first shard by id.
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

  -- See slot.rs. Parameters are named `asked`, since `ticket` is the last ticket taken.

  -- Of all shards, with this shard's and its new grants.
  local all_running = running - known_running + RUNNING
  -- The interval at which the first ticket asks for a permit to run.
  local poll = max_running > 0 and min(max(interval, 10000), 100000)

  -- No burst shortens a hold.
  local function held_tat()
    return held_until > 0 and max(tat, add(held_until, mul(interval, burst - 1))) or tat
  end

  local function next_slot(weight)
    local slot = sub(held_tat(), mul(interval, burst - min(weight, burst)))
    for n = 1, more do
      slot = max(slot, sub(tats[n], mul(intervals[n], bursts[n] - min(weight, bursts[n]))))
    end
    return slot
  end

  -- After `slots` jobs of weight 1, with `kept` of each burst reserved for others.
  local function slot_behind(slots, kept, weight)
    local first = next_slot(1)
    local beyond, full = slots + min(kept, burst - 1) + min(weight, burst) - burst, max(held_tat(), first)
    local slot = max(first, beyond < 0 and sub(full, mul(interval, -beyond)) or add(full, mul(interval, beyond)))
    for n = 1, more do
      beyond, full = slots + min(kept, bursts[n] - 1) + min(weight, bursts[n]) - bursts[n], max(tats[n], first)
      slot = max(slot, beyond < 0 and sub(full, mul(intervals[n], -beyond)) or add(full, mul(intervals[n], beyond)))
    end
    return slot
  end

  -- Of other shards' jobs before a ticket, without one job of each shard whose ticket is at least
  -- `counted`. Only defined with bursts and jobs above weight 1.
  local bursty = (bursts[more] or burst) > 1
  local weight_before = bursty and heavy > (known_weight > 1 and 1 or 0) and function(asked, counted)
    if asked <= first_head then
      return 0
    end
    local sum, ids = 0, redis.call('ZRANGEBYSCORE', INDEX, 0, '(' .. string.format('%.0f', asked))
    for i = 1, #ids, 1000 do
      local portion = { unpack(ids, i, min(i + 999, #ids)) }
      for k, its in ipairs(redis.call('HMGET', QUEUE, unpack(portion))) do
        if its and #its >= PRESENCE_SIZE and portion[k] ~= ME then
          local its_head, its_weight = struct.unpack('<d', its), struct.unpack('<d', its, WEIGHT_AT)
          sum = sum + (its_weight > 1 and its_weight - (its_head >= counted and 1 or 0) or 0)
        end
      end
    end
    return sum
  end

  local function rank(asked)
    if asked <= first_head then
      return 0
    end
    local before = redis.call('ZCOUNT', INDEX, 0, '(' .. string.format('%.0f', asked))
    return known_head >= 0 and known_head < asked and before - 1 or before
  end

  -- Of an overtaken ticket that was not forgotten. A heavy job does not fit in between.
  local function own_slot(asked, weight)
    -- After the last ticket there is no distance to count.
    if asked > current or weight > 1 or burst > 1 or asked < line_from or current == 2^53 - 1 then
      return nil
    end
    local distance = mul(interval, current + 1 - asked)
    local slot = tat >= add(now, distance) and tat - distance or nil
    for n = 1, slot and more or 0 do
      if sub(tats[n], mul(intervals[n], bursts[n] - 1)) > slot then
        return nil
      end
    end
    return slot
  end

  -- Assumes that earlier tickets use their slots. Bursts are left to earlier heavy jobs.
  local function by_distance(asked, weight)
    local kept = weight_before and weight_before(asked, current + 1) or 0
    return slot_behind(asked > current and asked - current - 1 or 0, kept, weight)
  end

  -- Earlier tickets need time to notice that a job may run again, if only one may.
  local function courtesy(asked)
    local room = limit - all_running
    return room > 0 and room <= others and room <= rank(asked) and 2 * poll or 0
  end

  -- A late ticket of another shard comes first, or a shard with a longer lead would always be
  -- served before it.
  local function lead_for(asked)
    if first_head <= current and asked > current and not own_slot(first_head, 1) then
      return min(LEAD, 1000)
    end
    return LEAD
  end

  -- Takes tickets, and grants a leading part of the tickets asked for: step.rs and slot.rs. Tickets
  -- that the shard dropped, and tickets that the record does not know, are recorded first.
  if HIGHEST > ticket then
    ticket = HIGHEST
  end
  if GIVEN_UP > gaps_until then
    gaps_until = max(gaps_until, min(GIVEN_UP, ticket))
  end
  -- Another shard may hold the same tickets: no overtaken ticket owns a slot.
  if ASKS > 0 and (known_head < 0 or known_head > LOWEST) then
    line_from = max(line_from, add(ticket, 1))
  end
  -- The next slot keeps its distance from a late start, unless it has been granted already.
  if burst == 1 and LATE_START > 0 and LATE_START == current and tat < add(min(LATE_AT, now), interval) then
    tat = add(min(LATE_AT, now), interval)
    last_slot = max(last_slot, min(LATE_AT, now))
    line_from = max(line_from, add(current, 1))
  end
  -- A new take, or the repeated one.
  local first, count = 0, 0
  if REQUEST > 0 then
    if REQUEST ~= last_request then
      last_request, last_first, last_count = REQUEST, ticket + 1, COUNT
      ticket = ticket + COUNT
    end
    first, count = last_first, last_count
  end
  if was_full and all_running < limit then
    count_slots_from_now()
  end

  -- The slots granted; the first refused ticket (-1: none), its weight and the reason; with bursts,
  -- also the grants to remember.
  local slots, head, head_weight, refused = {}, -1, 1, nil
  local granted, grants = 0, ''
  local new = count < WEIGHTS and count or WEIGHTS
  for n = 0, ASKS + new - 1 do
    local asked, weight, slot
    if n < ASKS then
      asked, weight = struct.unpack('<dd', ARGV[2], FIRST_ASK + 16 * n)
    else
      asked = add(first, n - ASKS)
      weight = struct.unpack('<d', ARGV[2], FIRST_ASK + 8 * (ASKS + n))
    end
    if paused == 1 then
      refused = 'paused'
    elseif all_running >= limit then
      refused = 'at-max-running'
    elseif weight == 1 and unacknowledged[asked] and unacknowledged[asked] >= max(sub(now, interval), held_until) then
      slot = unacknowledged[asked]
    else
      slot = asked <= current and own_slot(asked, weight)
      if slot then
        -- The earlier tickets have paid for it already.
        for k = 1, more do
          tats[k] = add(max(tats[k], slot), intervals[k])
        end
      end
      if not slot and asked <= current and LATE == REQUEUE then
        refused = 'missed'
      elseif not slot then
        local due = asked <= first_head and next_slot(weight)
          or add(by_distance(asked, weight), asked > current and courtesy(asked) or 0)
        if due > now + lead_for(asked) then
          refused = asked > first_head and 'behind' or 'slot'
        else
          slot = due > now and due or now
          -- A change of slots against tickets takes the slot by distance from an overtaken ticket.
          if asked <= current then
            line_from = max(line_from, add(current, 1))
          elseif weight > 1 then
            line_from = max(line_from, add(asked, 1))
          elseif burst > 1 or slot ~= add(max(tat, held_until), mul(interval, asked - current - 1)) then
            line_from = max(line_from, asked)
          end
          if asked > current then
            current = asked
          end
          tat = add(max(held_tat(), slot), mul(interval, weight))
          for k = 1, more do
            tats[k] = add(max(tats[k], slot), mul(intervals[k], weight))
          end
          if slot > last_slot then
            last_slot = slot
          end
        end
      end
    end
    if not slot then
      head, head_weight = asked, weight
      break
    end
    all_running = all_running + 1
    slots[n + 1] = slot
    if bursty and weight == 1 then
      granted, grants = granted + 1, grants .. struct.pack(GRANT, asked, slot)
    end
  end
  if head < 0 then
    head = (THEN < 0 and count > WEIGHTS) and add(first, WEIGHTS) or THEN
  end

  -- See wait.rs.

  local reason, ask_in = '', -1
  if refused and refused ~= 'missed' then
    reason = refused
  elseif head >= 0 and paused == 1 then
    reason = 'paused'
  elseif head >= 0 and all_running >= limit then
    reason = 'at-max-running'
  elseif head >= 0 then
    reason = head > first_head and 'behind' or 'slot'
  end
  if reason ~= '' and reason ~= 'paused' then
    local lead = lead_for(head)
    local middle = (lead - lead % 2) / 2
    local kept = weight_before and weight_before(head, 0) or 0
    local slot
    if head <= current then
      slot = own_slot(head, head_weight)
      slot = slot and sub(slot, middle) or sub(slot_behind(rank(head), kept, head_weight), LEAD)
    elseif head <= first_head then
      slot = sub(next_slot(head_weight), middle)
    else
      slot = sub(by_distance(head, head_weight), middle)
      if slot <= now then
        slot = add(slot, courtesy(head))
      end
      if current < gaps_until then
        local by_rank = sub(slot_behind(rank(head), kept, head_weight), middle)
        slot = min(slot, max(by_rank, add(now, interval)))
      end
    end
    ask_in = sub(slot, now)
    if reason == 'at-max-running' and ask_in == 0 then
      -- A job may end before the slot; from the slot on the shard has to poll.
      ask_in = mul(poll, rank(head) + 1)
    end
    ask_in = min(ask_in, (LEASE - LEASE % 2) / 2)
    if reason ~= 'slot' and next_end <= add(now, ask_in) then
      -- One shard after the other, or a thousand would ask at the same instant. The delay is short,
      -- since earlier shards may be dead.
      local delay = mul(min(interval, 1000), max(rank(head) - 1, 0))
      next_end = others > 0 and find_next_end() or 2^53 - 1
      ask_in = min(ask_in, sub(add(next_end, delay), now))
    end
  end
  if refused == 'missed' then
    reason = 'missed'
  end

  -- See step.rs. Without a running limit no shard needs to know when a job ends, and a short job
  -- saves its shard the second command.
  if head >= 0 or RUNNING > 0 or (max_running > 0 and #slots > 0) then
    local ends, runs = add(now, LEASE), min(RUNNING + #slots, 4294967295)
    local weight = head >= 0 and head_weight or 1
    presence = struct.pack('<dddddddddc0c0', head, runs, ends, SEQUENCE, last_request, last_first, last_count, weight,
      granted, grants, ARGV[4])
    if ends < next_end then
      next_end = ends
    end
    running = running - known_running + runs
    heavy = sub(heavy, known_weight > 1 and 1 or 0) + (weight > 1 and 1 or 0)
    if not known then
      shards = shards + 1
      is_new = shards == 1
    end
    local added
    if head >= 0 then
      added = redis.call('ZADD', INDEX, -1 - ends, my_lease, head, ME)
    else
      added = redis.call('ZADD', INDEX, -1 - ends, my_lease)
      if known_head >= 0 then
        redis.call('ZREM', INDEX, ME)
      end
    end
    if is_index_damaged or (known and added > (known_head < 0 and 1 or 0)) then
      local all = redis.call('HGETALL', QUEUE)
      shards, running, heavy, is_new = 1, runs, weight > 1 and 1 or 0, true
      for i = 1, #all, 2 do
        local id, other = all[i], all[i + 1]
        if id ~= '' and id ~= ME and #other >= PRESENCE_SIZE then
          local its_head, its_running, its_end = struct.unpack('<ddd', other)
          shards, running, next_end = shards + 1, running + its_running, min(next_end, its_end)
          heavy = heavy + (struct.unpack('<d', other, WEIGHT_AT) > 1 and 1 or 0)
          redis.call('ZADD', INDEX, -1 - its_end, ' ' .. id)
          if its_head >= 0 then
            redis.call('ZADD', INDEX, its_head, id)
          end
        end
      end
    end
  elseif known then
    shards, running, heavy = shards - 1, sub(running, known_running), sub(heavy, known_weight > 1 and 1 or 0)
    redis.call('HDEL', QUEUE, ME)
    redis.call('ZREM', INDEX, ME, my_lease)
  end

  -- The reply: first and number of the tickets taken, whether the shard is present, when it asks
  -- again (-1: never), the ticket that it waits behind, the number of grants and their slots, of
  -- which the first is always present, since there is rarely another one; the reason, and after a
  -- blank the shard that it waits behind.
  local further = #slots > 1 and struct.pack('<' .. string.rep('d', #slots - 1), unpack(slots, 2)) or ''
  local behind = 0
  if reason == 'behind' then
    behind, reason = first_head, 'behind ' .. first_shard
  end
  reply = struct.pack('<dddddddddddddc0 dddddddc0c0', seen_at, ticket, current, revision, max_running, paused,
    held_until, longest_lead, shards, more, interval, burst, tat, pack_more(), first, count, presence and 1 or 0,
    ask_in, behind, #slots, slots[1] or 0, further, reason)
else
  -- See change.rs. The reply has the settings before, without rates if the queue did not exist.
  local before = is_new_queue and struct.pack('<dd', 0, 0) or pack_settings()

  local function revise()
    revision = max(add(revision, 1), seen_at)
  end

  local function set()
    local was_full = running >= limit
    if RATES > 0 and not has_rates() then
      set_rates(RATES_AT, 16, RATES)
      line_from = max(line_from, add(current, 1))
    end
    max_running = LIMIT < 0 and max_running or LIMIT
    if was_full and (max_running == 0 or running < max_running) then
      count_slots_from_now()
    end
    revise()
  end

  local function reset()
    paused, held_until, longest_lead = 0, 0, 0
    each(function(i, b, t)
      return min(t, add(add(now, 1000000), mul(i, b)))
    end)
    line_from = max(line_from, add(ticket, 1))
    gaps_until = ticket
    running, shards, heavy, kept_until = 0, 0, 0, 0
    redis.call('DEL', QUEUE, INDEX)
    revise()
  end

  if CHANGE == 'set' or CHANGE == 'open' and (ON_EXISTING == 'replace' or ON_EXISTING == 'reset') and not is_set() then
    set()
  end
  if CHANGE == 'reset' or CHANGE == 'open' and ON_EXISTING == 'reset' and not is_new_queue then
    reset()
  elseif CHANGE == 'pause' then
    paused = 1
    revise()
  elseif CHANGE == 'resume' then
    if paused == 1 then
      count_slots_from_now()
    end
    paused = 0
    revise()
  elseif CHANGE == 'hold' and add(now, HOLD) > held_until then
    held_until = add(now, HOLD)
    line_from = max(line_from, add(current, 1))
    revise()
  end
  reply = struct.pack('<dddddddddddddc0c0', seen_at, ticket, current, revision, max_running, paused, held_until,
    longest_lead, shards, more, interval, burst, tat, pack_more(), before)
end

-- The keys outlive all that they reserve by the idle expiry. A paused queue never expires, nor the
-- rate of a queue of stored tasks. Opening such a queue is a change, so only changes look for
-- tasks. For a user without the right to the tasks' key there is no such queue.
local keep_for_good, expire_in = paused == 1, nil
if paused == 0 then
  -- A lease is at most an hour.
  local needed = max(tat, held_until, now, unpack(tats)) - now + 3600000000 + IDLE
  local expires = is_new or kept_until < add(now, needed)
  keep_for_good = (expires or CHANGE) and redis.pcall('EXISTS', QUEUE .. ':t') == 1
  if expires and not keep_for_good then
    -- An eighth more, so that not every command has to set the expiry.
    needed = needed + math.ceil(IDLE / 8)
    kept_until = add(now, needed)
    expire_in = math.ceil(needed / 1000)
  end
end
local persists = keep_for_good and kept_until > 0
if keep_for_good then
  kept_until = 0
end
local record = struct.pack('<ddddddddddddddddddddddc0c0', VERSION, interval, burst, tat, more, last_slot, max_running,
  paused, revision, ticket, current, held_until, line_from, gaps_until, longest_lead, lifted_at, seen_at, running,
  shards, heavy, next_end, kept_until, pack_more(), incarnation)
if presence then
  redis.call('HSET', QUEUE, '', record, ME, presence)
else
  redis.call('HSET', QUEUE, '', record)
end
if expire_in then
  redis.call('PEXPIRE', QUEUE, expire_in)
  redis.call('PEXPIRE', INDEX, expire_in)
elseif persists then
  redis.call('PERSIST', QUEUE)
  redis.call('PERSIST', INDEX)
end

-- If the user may not publish, the change is made all the same.
if CHANGE and revision ~= known_revision then
  redis.pcall('PUBLISH', QUEUE .. ':changes', '')
end

return reply
