-- The script of a queue. It carries out a step of a shard, a change for all shards or a look, and says the
-- same as the rules of the contract, whose files it names below (rules/*.rs).
--
-- It is one chunk whose parts share their locals, as each run pays for every function that it defines.
--
-- luacheck: std lua51, read globals KEYS ARGV redis struct, max line length 120

-- Arithmetic of microseconds and tickets: whole numbers from 0 to 2^53 - 1 that stop at both ends, as in
-- Rust. A sum or product beyond may be rounded, but never to below the end.
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

-- How a queue is kept: two keys in one hash slot.
--
-- QUEUE is a hash. Its field '' is the record, each other field the presence of the shard whose id it is.
-- INDEX is a sorted set of the presences. Left of zero each shard stands by the end of its lease, its id
-- behind a blank, the one that ends next nearest to zero; right of zero each shard that has a head stands by
-- it. So one command moves a shard to both its places, and the lowest head comes right after as many leases
-- as there are shards.
--
-- Numbers are packed as doubles: text would cost more than all else here.
local QUEUE, INDEX = KEYS[1], KEYS[2]
local VERSION = 3
-- The version and the numbers below; behind them are the meters but the first, each an interval, a burst and a
-- `tat`, and the incarnation as text.
local RECORD, RECORD_SIZE = '<dddddddddddddddddddddd', 176
local METER, METER_SIZE = '<ddd', 24
-- Head (-1: none), running, end of the lease, sequence number, last take (request or 0, first ticket, count), weight
-- of the head, how many grants are remembered; behind them are these, each a ticket and its slot, and the label as
-- text.
local PRESENCE, PRESENCE_SIZE, WEIGHT_AT, GRANTED_AT = '<ddddddddd', 72, 57, 65
local GRANT, GRANT_SIZE = '<dd', 16

-- ARGV: the name of the server; packed numbers; a shard, its label. A change has '' for the shard and says
-- behind it what to change and what to do with a queue that is there. A look has the name of the server
-- alone.
local ME = ARGV[3] or ''
local IS_STEP, CHANGE, ON_EXISTING = ME ~= '', ME == '' and ARGV[4], ARGV[5]

-- The record. The first meter stands by itself, as there is rarely another one; `more` is the number of the
-- others. `max_running` 0 stands for any number, `paused` is 0 or 1, `running` and `shards` are the sum
-- and the number of the presences, `heavy` the number of those with a head above weight 1. No lease ends before
-- `next_end`. The keys expire at `kept_until`, or never if it is 0.
local interval, burst, tat, more, intervals, bursts, tats = 0, 1, 0, 0, {}, {}, {}
local last_slot, max_running, paused, revision = 0, 0, 0, 0
local ticket, current, held_until, line_from, gaps_until = 0, 0, 0, 0, 0
local longest_lead, lifted_at, seen_at, running, shards, heavy, next_end, kept_until = 0, 0, 0, 0, 0, 0, 2^53 - 1, 0
local incarnation = ''

-- A run that refuses returns a kind and details instead of a packed reply. It has written nothing then.
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
  -- That the index holds another type is an error before anything is written.
  redis.call('ZCARD', INDEX)
end

-- What there is of one meter and of all together: meter.rs.

-- Gives each meter the `tat` that `change` makes of its interval, its burst and its `tat`.
local function each(change)
  tat = change(interval, burst, tat)
  for n = 1, more do
    tats[n] = change(intervals[n], bursts[n], tats[n])
  end
end

-- How often the second number goes into the first.
local function quotient(a, b)
  return (a - math.fmod(a, b)) / b
end

-- The meters but the first, packed.
local function pack_more()
  local packed = ''
  for n = 1, more do
    packed = packed .. struct.pack(METER, intervals[n], bursts[n], tats[n])
  end
  return packed
end
-- When the record was last written.
local written_at = seen_at

-- The settings, packed: the running limit, the number of the rates and the rates.
local function pack_settings()
  local packed = struct.pack('<dddd', max_running, more + 1, interval, burst)
  for n = 1, more do
    packed = packed .. struct.pack('<dd', intervals[n], bursts[n])
  end
  return packed
end

-- The state's clock: clock.rs.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- By how much the clock was stepped back, if it was.
local back = 0
if seen_at - now > 1000000 then
  back = seen_at - now
  each(function(_, _, t)
    return sub(t, back)
  end)
  last_slot, held_until = sub(last_slot, back), sub(held_until, back)
  lifted_at, seen_at, next_end = sub(lifted_at, back), sub(seen_at, back), sub(next_end, back)
  line_from = max(line_from, add(current, 1))
end
if seen_at < now then
  seen_at = now
end
now = seen_at

-- A look touches nothing. It replies with the packed instant and numbers of the record, its incarnation, and
-- the id and the presence of each shard; just 'ok' if there is no such queue.
if not ARGV[2] then
  if not found then
    return { 'ok' }
  end
  local reply = {
    'ok',
    struct.pack('<ddddddddddddddddddc0', now, interval, burst, tat, more, last_slot, max_running, paused, revision,
      ticket, current, held_until, line_from, gaps_until, longest_lead, lifted_at, min(written_at, now), back,
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

-- What is said. First the idle expiry, and what its sender remembers of the record.
local IDLE, memory_at, memory_sequence, memory_ticket, memory_current, memory_revision, memory_max_running,
  memory_paused, memory_held_until, memory_longest_lead, memory_more, memory_interval, memory_burst, memory_tat
-- Then, of a step: 0 stands for none, -1 for no ticket. LOWEST is the first ticket that asks, HIGHEST the
-- highest that the shard holds, LATE_START and LATE_AT are a start that moves the next slot.
local SEQUENCE, LEASE, LEAD, LATE, RUNNING, GIVEN_UP, THEN, LOWEST, HIGHEST, REQUEST, COUNT, LATE_START, LATE_AT, ASKS,
  WEIGHTS
local REQUEUE = 1
-- Of a change: 0 stands for any running limit, -1 for the one that is stored. RATES is the number of its rates,
-- 0 stands for those that are stored. HOLD is also how long a queue must have been idle to be deleted.
local LIMIT, HOLD, RATES
-- The meters that are remembered stand from METERS_AT on, the first of them among the numbers. Behind them come
-- the asks, each a ticket and a weight, and the weights of the take; or the rates, each an interval and a burst.
local METERS_AT, FIRST_ASK, RATES_AT

-- What the record knows of the shard.
local known = stored[2]
local known_head, known_running, known_sequence, last_request, last_first, last_count = -1, 0, math.huge, 0, 0, 0
local known_weight = 1
-- The slots that the reply to its last step granted, by ticket, if it has not heard of it: again.rs.
local unheard = {}
-- The revision that is stored, which every change raises.
local known_revision = revision
local is_new_queue, has_rates, is_set = false, nil, nil

-- All that can be wrong. Nothing was touched yet.
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
    for n = 0, known_sequence > memory_sequence and back == 0 and granted - 1 or -1 do
      local its_ticket, slot = struct.unpack(GRANT, known, PRESENCE_SIZE + GRANT_SIZE * n + 1)
      unheard[its_ticket] = slot
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
  -- Every shard opens its queue first: the place to find out what the user may not do, so that no run ends
  -- halfway. Redis before 7 cannot tell.
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
  -- That the index is of another type is an error before anything is written.
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

  -- To forget the queue: delete.rs. Nothing else of this script is run then.
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
        elseif id ~= '' and sub(struct.unpack('<d', its, 17), back) > now then
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
    -- The reply tells the instant, and the settings there were.
    return struct.pack('<dddddddddddddc0', now, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, pack_settings())
  end
end

-- Which server process this is, '' where nobody may know. A client tells what it is connected to, or '?'.
local server = ARGV[1]
if server == '?' then
  local info = redis.pcall('INFO', 'server')
  server = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
end

-- Sets the rates that stand at `at`, each in so many bytes. What a meter owes is carried over in slots; a new one
-- among others begins with the most that any of them owes. A weight above the burst is owed as it is, by the first
-- one in any case. It is counted from the last slot on, and if that is still to come from now on, too. Nor does the
-- next slot come before it: meter.rs.
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

-- A record that was lost or rewound is lifted again by what the shards remember: loss.rs.

-- Whether a meter that is remembered is ahead of the one in its place, if that is of the same rate.
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
    -- Slots may have been granted up to there of which nobody has told.
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

-- Slots went by while nothing could start and nobody missed them: distances count from now. What was used before is
-- paid off.
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

-- As many jobs may run at once: presence.rs. From here on it writes.
local limit = max_running > 0 and max_running or math.huge

-- What was left of a queue that is lost. A script whose first write is a DEL is let through when memory is
-- short, so none is sent in vain.
if not found and redis.call('EXISTS', INDEX) == 1 then
  redis.call('DEL', INDEX)
end

-- Leases move with the clock, and grants are forgotten. This is the one thing whose work grows with the number of
-- shards.
if back > 0 and shards > 0 then
  local all = redis.call('HGETALL', QUEUE)
  for i = 1, #all, 2 do
    local id, presence = all[i], all[i + 1]
    if id ~= '' and #presence >= PRESENCE_SIZE then
      local ends = sub(struct.unpack('<d', presence, 17), back)
      local label = PRESENCE_SIZE + GRANT_SIZE * struct.unpack('<d', presence, GRANTED_AT) + 1
      presence = string.sub(presence, 1, 16) .. struct.pack('<d', ends) .. string.sub(presence, 25, GRANTED_AT - 1)
        .. struct.pack('<d', 0) .. string.sub(presence, label)
      redis.call('HSET', QUEUE, id, presence)
      redis.call('ZADD', INDEX, -1 - ends, ' ' .. id)
    end
  end
end

-- What is kept of the shard from now on, whether it is the first one, and the reply. It begins with what is
-- to be remembered.
local presence, is_new, reply
if IS_STEP then
  -- The other shards. Those whose lease has ended are forgotten: presence.rs.
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
      for _, other in ipairs(redis.call('HMGET', QUEUE, unpack(dead))) do
        -- One that is not there may have had a head.
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

  -- Which slot a ticket may have: slot.rs. Parameters are named `asked`, as `ticket` is the last one taken.

  -- Running jobs of all shards, this one's and what it was just granted included.
  local all_running = running - known_running + RUNNING
  -- How often the first in line asks for room to run.
  local poll = max_running > 0 and min(max(interval, 10000), 100000)

  -- The `tat` of the first meter with a hold in force, which no burst ends.
  local function held_tat()
    return held_until > 0 and max(tat, add(held_until, mul(interval, burst - 1))) or tat
  end

  -- The earliest slot for a job of that weight.
  local function next_slot(weight)
    local slot = sub(held_tat(), mul(interval, burst - min(weight, burst)))
    for n = 1, more do
      slot = max(slot, sub(tats[n], mul(intervals[n], bursts[n] - min(weight, bursts[n]))))
    end
    return slot
  end

  -- The slot of a job of that weight behind so many of weight 1, with so much of each burst kept for others.
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

  -- What the jobs of other shards before a ticket weigh, but for one of each that has its ticket from `counted` on.
  -- There is no such function unless there are bursts and jobs above weight 1.
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

  -- How many other shards hold a ticket before this one.
  local function rank(asked)
    if asked <= first_head then
      return 0
    end
    local before = redis.call('ZCOUNT', INDEX, 0, '(' .. string.format('%.0f', asked))
    return known_head >= 0 and known_head < asked and before - 1 or before
  end

  -- The slot of a ticket that was overtaken but not forgotten. A heavy job does not fit in between.
  local function own_slot(asked, weight)
    -- Behind the last ticket of all there is none to count from.
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

  -- Its own place, whether or not those before it use theirs. Bursts are left to heavy jobs before it.
  local function by_distance(asked, weight)
    local kept = weight_before and weight_before(asked, current + 1) or 0
    return slot_behind(asked > current and asked - current - 1 or 0, kept, weight)
  end

  -- The time that those before it have to notice that there is room to run again, if there is none for more.
  local function courtesy(asked)
    local room = limit - all_running
    return room > 0 and room <= others and room <= rank(asked) and 2 * poll or 0
  end

  -- How early it may have its slot. While another shard holds a late one, that comes first: a shard with a
  -- longer lead would else be served before it for ever.
  local function lead_for(asked)
    if first_head <= current and asked > current and not own_slot(first_head, 1) then
      return min(LEAD, 1000)
    end
    return LEAD
  end

  -- Tickets are taken, and a leading part of what is asked for is granted: step.rs and slot.rs.
  --
  -- Tickets that the shard dropped, and tickets of which the record does not know, leave their mark.
  if HIGHEST > ticket then
    ticket = HIGHEST
  end
  if GIVEN_UP > gaps_until then
    gaps_until = max(gaps_until, min(GIVEN_UP, ticket))
  end
  -- Somebody else may hold the same tickets: no overtaken ticket owns a slot.
  if ASKS > 0 and (known_head < 0 or known_head > LOWEST) then
    line_from = max(line_from, add(ticket, 1))
  end
  -- The next slot keeps its distance from a start that came late, unless somebody has it already.
  if burst == 1 and LATE_START > 0 and LATE_START == current and tat < add(min(LATE_AT, now), interval) then
    tat = add(min(LATE_AT, now), interval)
    last_slot = max(last_slot, min(LATE_AT, now))
    line_from = max(line_from, add(current, 1))
  end
  -- The last take, a new one or the one that is asked for again.
  local first, count = 0, 0
  if REQUEST > 0 then
    if REQUEST ~= last_request then
      last_request, last_first, last_count = REQUEST, ticket + 1, COUNT
      ticket = ticket + COUNT
    end
    first, count = last_first, last_count
  end
  -- Slots went by while nothing could start and nobody missed them: distances count from now.
  if was_full and all_running < limit then
    count_slots_from_now()
  end

  -- The slot of each granted ticket, the first that got none (-1: none), its weight and why; and what is remembered
  -- of the grants if there are bursts.
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
    elseif weight == 1 and unheard[asked] and unheard[asked] >= max(sub(now, interval), held_until) then
      slot = unheard[asked]
    else
      slot = asked <= current and own_slot(asked, weight)
      if slot then
        -- The line has paid for it already.
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
          -- Whatever moves slots against tickets makes an overtaken ticket lose the slot it had by distance.
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

  -- What the lowest ticket that is left waits for, and when its shard asks again: wait.rs.

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
      -- Until its slot comes a job may end; from then on it has to look.
      ask_in = mul(poll, rank(head) + 1)
    end
    ask_in = min(ask_in, (LEASE - LEASE % 2) / 2)
    if reason ~= 'slot' and next_end <= add(now, ask_in) then
      -- One after the other: a thousand would all ask in the same instant. Little, since those before it may
      -- be dead, too.
      local turn = mul(min(interval, 1000), max(rank(head) - 1, 0))
      next_end = others > 0 and find_next_end() or 2^53 - 1
      ask_in = min(ask_in, sub(add(next_end, turn), now))
    end
  end
  if refused == 'missed' then
    reason = 'missed'
  end

  -- What is known of the shard from now on: step.rs. Without a limit nobody needs to know when a job ends,
  -- and a short one saves its shard the second command.
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
    if torn or (known and added > (known_head < 0 and 1 or 0)) then
      -- The index is made again from the presences.
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

  -- The reply: first and number of the tickets taken, whether the shard is present, when it asks again (-1:
  -- never), the ticket that it waits behind, the number of grants and their slots; then what it waits for, and
  -- behind a blank the shard that it waits behind. The first slot is always there, as there is rarely another one.
  local further = #slots > 1 and struct.pack('<' .. string.rep('d', #slots - 1), unpack(slots, 2)) or ''
  local behind = 0
  if reason == 'behind' then
    behind, reason = first_head, 'behind ' .. first_shard
  end
  reply = struct.pack('<dddddddddddddc0 dddddddc0c0', seen_at, ticket, current, revision, max_running, paused,
    held_until, longest_lead, shards, more, interval, burst, tat, pack_more(), first, count, presence and 1 or 0,
    ask_in, behind, #slots, slots[1] or 0, further, reason)
else
  -- A change: change.rs. The reply tells the settings before, without rates if there was no such queue.
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

-- The record is written, and what is kept of the shard if there is anything. The keys outlive all that they
-- reserve by the idle expiry; a paused queue is nobody's to forget, nor the rate of a queue of stored tasks. Who opens
-- that one makes a change, so not every step looks for tasks. A user without the right to their key has no such queue.
local keep_for_good, expire_in = paused == 1, nil
if paused == 0 then
  -- No lease is longer than an hour.
  local needed = max(tat, held_until, now, unpack(tats)) - now + 3600000000 + IDLE
  local expires = is_new or kept_until < add(now, needed)
  keep_for_good = (expires or CHANGE) and redis.pcall('EXISTS', QUEUE .. ':t') == 1
  if expires and not keep_for_good then
    -- An eighth more, so that not every command has to say it again.
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

-- A change is told to those who watch the queue. A user without the right to tell has made it all the same.
if CHANGE and revision ~= known_revision then
  redis.pcall('PUBLISH', QUEUE .. ':changes', '')
end

return reply
