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
local VERSION = 2
-- The version and the numbers below; behind them is the incarnation as text.
local RECORD, RECORD_SIZE = '<dddddddddddddddddd', 144
-- Head (-1: none), running, end of the lease, sequence number, last take (request or 0, first ticket, count);
-- behind them is the label as text.
local PRESENCE, PRESENCE_SIZE = '<ddddddd', 56

-- ARGV: the name of the server; packed numbers; a shard, its label. A change has '' for the shard and says
-- behind it what to change and what to do with a queue that is there. A look has the name of the server
-- alone.
local ME = ARGV[3] or ''
local IS_STEP, CHANGE, ON_EXISTING = ME ~= '', ME == '' and ARGV[4], ARGV[5]

-- The record. `max_running` 0 stands for any number, `paused` is 0 or 1, `running` and `shards` are the sum
-- and the number of the presences. No lease ends before `next_end`. The keys expire at `kept_until`, or never
-- if it is 0.
local interval, max_running, paused, revision = 0, 0, 0, 0
local ticket, current, free_at, held_until, line_from, gaps_until = 0, 0, 0, 0, 0, 0
local longest_lead, lifted_at, seen_at, running, shards, next_end, kept_until = 0, 0, 0, 0, 0, 2^53 - 1, 0
local incarnation = ''

-- A run that refuses returns a kind and details instead of a packed reply. It has written nothing then.
local stored = redis.call('HMGET', QUEUE, '', ME)
local found = stored[1]
if found then
  local version
  if #found >= RECORD_SIZE then
    version, interval, max_running, paused, revision, ticket, current, free_at, held_until, line_from, gaps_until,
      longest_lead, lifted_at, seen_at, running, shards, next_end, kept_until = struct.unpack(RECORD, found)
    incarnation = string.sub(found, RECORD_SIZE + 1)
  end
  if version ~= VERSION then
    version = #found >= 8 and struct.unpack('<d', found) or 0
    if version > VERSION and version % 1 == 0 and version < 2^53 then
      return { 'newer', version, VERSION }
    end
    return { 'foreign', 'the record has no version' }
  end
  local fractions = interval % 1 + max_running % 1 + paused % 1 + revision % 1 + ticket % 1 + current % 1 + free_at % 1
    + held_until % 1 + line_from % 1 + gaps_until % 1 + longest_lead % 1 + lifted_at % 1 + seen_at % 1 + running % 1
    + shards % 1 + next_end % 1 + kept_until % 1
  if fractions ~= 0
    or min(max_running, paused, revision, ticket, current, free_at, held_until, line_from, gaps_until, longest_lead,
      lifted_at, seen_at, running, shards, next_end, kept_until) < 0
    or max(revision, ticket, free_at, held_until, line_from, gaps_until, lifted_at, seen_at, running, shards, next_end,
      kept_until) >= 2^53
  then
    return { 'foreign', 'a number is not whole or out of range' }
  elseif interval < 1 or interval > 31622400000000 or max_running > 4294967295 then
    return { 'foreign', 'interval or max_running is out of range' }
  elseif paused > 1 then
    return { 'foreign', 'paused is neither 0 nor 1' }
  elseif current > ticket then
    return { 'foreign', 'current is above ticket' }
  elseif longest_lead > 1000000 then
    return { 'foreign', 'longest_lead is out of range' }
  end
elseif redis.call('EXISTS', QUEUE) == 1 then
  return { 'foreign', 'it has no record' }
else
  -- That the index holds another type is an error before anything is written.
  redis.call('ZCARD', INDEX)
end

-- The state's clock: clock.rs.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- By how much the clock was stepped back, if it was.
local back = 0
if seen_at - now > 1000000 then
  back = seen_at - now
  free_at, held_until = sub(free_at, back), sub(held_until, back)
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
    struct.pack('<ddddddddddddddd', now, interval, max_running, paused, revision, ticket, current, free_at, held_until,
      line_from, gaps_until, longest_lead, lifted_at, seen_at, back),
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
local IDLE, memory_at, memory_sequence, memory_ticket, memory_current, memory_free_at, memory_revision,
  memory_interval, memory_max_running, memory_paused, memory_held_until, memory_longest_lead
-- Then, of a step: 0 stands for none, -1 for no ticket. LOWEST is the first ticket that asks, HIGHEST the
-- highest that the shard holds. From FIRST_ASK on come the asks, each a ticket and a weight, and the weights
-- of the take.
local SEQUENCE, LEASE, LEAD, LATE, RUNNING, GIVEN_UP, THEN, LOWEST, HIGHEST, REQUEST, COUNT, ASKS, WEIGHTS, FIRST_ASK
local REQUEUE = 1
-- Of a change: 0 stands for no interval and for any running limit, -1 for the running limit that is stored.
local INTERVAL, LIMIT, HOLD

-- What the record knows of the shard.
local known = stored[2]
local known_head, known_running, known_sequence, last_request, last_first, last_count = -1, 0, math.huge, 0, 0, 0
-- The revision that is stored, which every change raises.
local known_revision = revision
local is_new_queue, is_set = false, nil

-- All that can be wrong. Nothing was touched yet.
if IS_STEP then
  IDLE, memory_at, memory_sequence, memory_ticket, memory_current, memory_free_at, memory_revision, memory_interval,
    memory_max_running, memory_paused, memory_held_until, memory_longest_lead, SEQUENCE, LEASE, LEAD, LATE, RUNNING,
    GIVEN_UP, THEN, LOWEST, HIGHEST, REQUEST, COUNT, ASKS, WEIGHTS, FIRST_ASK
    = struct.unpack('<d ddddddddddd ddddddddddddd', ARGV[2])
  if known then
    local expires_at
    if #known >= PRESENCE_SIZE then
      known_head, known_running, expires_at, known_sequence, last_request, last_first, last_count
        = struct.unpack(PRESENCE, known)
    end
    if not expires_at or (known_head + known_running + known_sequence + last_first + last_count) % 1 ~= 0 then
      return { 'foreign', 'the presence of a shard cannot be read' }
    elseif known_sequence >= SEQUENCE then
      return { 'superseded', known_sequence }
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
  IDLE, memory_at, memory_sequence, memory_ticket, memory_current, memory_free_at, memory_revision, memory_interval,
    memory_max_running, memory_paused, memory_held_until, memory_longest_lead, INTERVAL, LIMIT, HOLD
    = struct.unpack('<d ddddddddddd ddd', ARGV[2])
  function is_set()
    return (INTERVAL == 0 or INTERVAL == interval) and (LIMIT < 0 or LIMIT == max_running)
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
  is_new_queue = not found and CHANGE == 'open' and memory_revision == 0 and INTERVAL > 0
  if found and CHANGE == 'open' and ON_EXISTING == 'fail' and not is_set() then
    return { 'conflict', interval, max_running }
  end
end

-- Which server process this is, '' where nobody may know. A client tells what it is connected to, or '?'.
local server = ARGV[1]
if server == '?' then
  local info = redis.pcall('INFO', 'server')
  server = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
end

if is_new_queue then
  interval, max_running, revision, incarnation = INTERVAL, max(LIMIT, 0), 1, server
  memory_at, memory_ticket, memory_current = 0, 0, 0
elseif not found and memory_revision == 0 then
  return { 'not-found' }
elseif not found then
  interval, max_running = memory_interval, memory_max_running
end

-- A record that was lost or rewound is lifted again by what the shards remember: loss.rs.
local restarted = incarnation ~= server
local same_clock = memory_at <= now + 1000000
local lost = memory_ticket > ticket
  or memory_current > current
  or memory_revision > revision
  or (same_clock and memory_revision == revision and memory_free_at > free_at)
  or known_sequence < memory_sequence
if restarted or lost then
  if same_clock and memory_revision >= revision then
    free_at = max(free_at, memory_free_at)
  end
  if memory_revision > revision then
    interval, max_running, paused, revision = memory_interval, memory_max_running, memory_paused, memory_revision
    if same_clock then
      held_until = memory_held_until
    end
  end
  ticket, current = max(ticket, memory_ticket), max(current, memory_current)
  longest_lead = max(longest_lead, memory_longest_lead)
  if restarted or not same_clock or memory_at >= lifted_at then
    free_at = max(free_at, add(add(now, interval), longest_lead))
    lifted_at = now
  end
  if lost then
    gaps_until = ticket
  end
  line_from = max(line_from, add(ticket, 1))
  incarnation = server
end

-- As many jobs may run at once: presence.rs. From here on it writes.
local limit = max_running > 0 and max_running or math.huge

-- What was left of a queue that is lost. A script whose first write is a DEL is let through when memory is
-- short, so none is sent in vain.
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
        local its_head, its_running = 0, 0
        if other and #other >= PRESENCE_SIZE then
          its_head, its_running = struct.unpack('<dd', other)
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

  -- Which slot a ticket may have: slot.rs. Parameters are named `asked`, as `ticket` is the last one taken.

  -- Running jobs of all shards, this one's and what it was just granted included.
  local all_running = running - known_running + RUNNING
  -- How often the first in line asks for room to run.
  local poll = max_running > 0 and min(max(interval, 10000), 100000)

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
    if asked > current or weight > 1 or asked < line_from or current == 2^53 - 1 then
      return nil
    end
    local distance = mul(interval, current + 1 - asked)
    return free_at >= add(now, distance) and free_at - distance or nil
  end

  -- Its own place, whether or not those before it use theirs.
  local function by_distance(asked)
    local base = free_at > held_until and free_at or held_until
    return asked > current and add(base, mul(interval, asked - current - 1)) or base
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
  if was_full and all_running < limit and free_at < now then
    free_at = now
    line_from = max(line_from, add(current, 1))
  end

  -- When each granted ticket starts, the first that got no slot (-1: none), its weight and why.
  local starts, head, head_weight, refused = {}, -1, 1, nil
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
    else
      slot = asked <= current and own_slot(asked, weight)
      if not slot and asked <= current and LATE == REQUEUE then
        refused = 'missed'
      elseif not slot then
        local due = max(free_at, held_until)
        if asked > current and asked > first_head then
          due = add(by_distance(asked), courtesy(asked))
        end
        if due > now + lead_for(asked) then
          refused = asked > first_head and 'behind' or 'slot'
        else
          slot = due > now and due or now
          -- Whatever moves slots against tickets makes an overtaken ticket lose the slot it had by distance.
          if asked <= current then
            line_from = max(line_from, add(current, 1))
          elseif weight > 1 then
            line_from = max(line_from, add(asked, 1))
          elseif slot ~= by_distance(asked) then
            line_from = max(line_from, asked)
          end
          if asked > current then
            current = asked
          end
          free_at = add(slot, mul(interval, weight))
        end
      end
    end
    if not slot then
      head, head_weight = asked, weight
      break
    end
    all_running = all_running + 1
    starts[n + 1] = sub(slot, now)
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
    local base, lead = max(free_at, held_until), lead_for(head)
    local middle = (lead - lead % 2) / 2
    local slot
    if head <= current then
      slot = own_slot(head, head_weight)
      slot = slot and sub(slot, middle) or sub(add(base, mul(interval, rank(head))), LEAD)
    elseif head <= first_head then
      slot = sub(base, middle)
    else
      slot = sub(by_distance(head), middle)
      if slot <= now then
        slot = add(slot, courtesy(head))
      end
      if current < gaps_until then
        local by_rank = sub(add(base, mul(interval, rank(head))), middle)
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
  if head >= 0 or RUNNING > 0 or (max_running > 0 and #starts > 0) then
    local ends, runs = add(now, LEASE), min(RUNNING + #starts, 4294967295)
    presence = struct.pack('<dddddddc0', head, runs, ends, SEQUENCE, last_request, last_first, last_count, ARGV[4])
    if ends < next_end then
      next_end = ends
    end
    running = running - known_running + runs
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
      shards, running, is_new = 1, runs, true
      for i = 1, #all, 2 do
        local id, other = all[i], all[i + 1]
        if id ~= '' and id ~= ME and #other >= PRESENCE_SIZE then
          local its_head, its_running, its_end = struct.unpack('<ddd', other)
          shards, running, next_end = shards + 1, running + its_running, min(next_end, its_end)
          redis.call('ZADD', INDEX, -1 - its_end, ' ' .. id)
          if its_head >= 0 then
            redis.call('ZADD', INDEX, its_head, id)
          end
        end
      end
    end
  elseif known then
    shards, running = shards - 1, sub(running, known_running)
    redis.call('HDEL', QUEUE, ME)
    redis.call('ZREM', INDEX, ME, my_lease)
  end

  -- The reply: first and number of the tickets taken, whether the shard is present, when it asks again (-1:
  -- never), the ticket that it waits behind, the number of grants and when they start; then what it waits
  -- for, and behind a blank the shard that it waits behind. The first start is always there, as there is
  -- rarely another one.
  local more = #starts > 1 and struct.pack('<' .. string.rep('d', #starts - 1), unpack(starts, 2)) or ''
  local behind = 0
  if reason == 'behind' then
    behind, reason = first_head, 'behind ' .. first_shard
  end
  reply = struct.pack('<ddddddddddd dddddddc0c0', seen_at, ticket, current, free_at, revision, interval, max_running,
    paused, held_until, longest_lead, shards, first, count, presence and 1 or 0, ask_in, behind, #starts,
    starts[1] or 0, more, reason)
else
  -- A change: change.rs. The reply tells the settings before, interval 0 if there was no such queue.
  local interval_before, max_running_before = is_new_queue and 0 or interval, max_running

  local function revise()
    revision = max(add(revision, 1), seen_at)
  end

  -- Slots went by while nothing could start and nobody missed them: distances count from now.
  local function count_slots_from_now()
    if free_at < now then
      free_at = now
      line_from = max(line_from, add(current, 1))
    end
  end

  local function set()
    local was_full = running >= limit
    if INTERVAL > 0 and INTERVAL ~= interval then
      -- The last slot stands some old intervals before `free_at`, one or the weight of its job, and at most a
      -- lead ahead. The next one comes as many new intervals after it.
      local to_come = sub(sub(free_at, now), 1000000)
      local rest = math.fmod(to_come, interval)
      local intervals = max((to_come - rest) / interval + (rest > 0 and 1 or 0), 1)
      free_at = sub(add(free_at, mul(INTERVAL, intervals)), mul(interval, intervals))
      line_from = max(line_from, add(current, 1))
      interval = INTERVAL
    end
    max_running = LIMIT < 0 and max_running or LIMIT
    if was_full and (max_running == 0 or running < max_running) then
      count_slots_from_now()
    end
    revise()
  end

  local function reset()
    paused, held_until, longest_lead = 0, 0, 0
    free_at = min(free_at, add(add(now, interval), 1000000))
    line_from = max(line_from, add(ticket, 1))
    gaps_until = ticket
    running, shards, kept_until = 0, 0, 0
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
  reply = struct.pack('<ddddddddddd dd', seen_at, ticket, current, free_at, revision, interval, max_running, paused,
    held_until, longest_lead, shards, interval_before, max_running_before)
end

-- The record is written, and what is kept of the shard if there is anything. The keys outlive all that they
-- reserve by the idle expiry; a paused queue is nobody's to forget.
local keep_for_good, expire_in = paused == 1 and kept_until > 0, nil
if paused == 1 then
  kept_until = 0
else
  -- No lease is longer than an hour.
  local needed = max(free_at, held_until, now) - now + 3600000000 + IDLE
  if is_new or kept_until < add(now, needed) then
    -- An eighth more, so that not every command has to say it again.
    needed = needed + math.ceil(IDLE / 8)
    kept_until = add(now, needed)
    expire_in = math.ceil(needed / 1000)
  end
end
local record = struct.pack('<ddddddddddddddddddc0', VERSION, interval, max_running, paused, revision, ticket, current,
  free_at, held_until, line_from, gaps_until, longest_lead, lifted_at, seen_at, running, shards, next_end, kept_until,
  incarnation)
if presence then
  redis.call('HSET', QUEUE, '', record, ME, presence)
else
  redis.call('HSET', QUEUE, '', record)
end
if expire_in then
  redis.call('PEXPIRE', QUEUE, expire_in)
  redis.call('PEXPIRE', INDEX, expire_in)
elseif keep_for_good then
  redis.call('PERSIST', QUEUE)
  redis.call('PERSIST', INDEX)
end

-- A change is told to those who watch the queue. A user without the right to tell has made it all the same.
if CHANGE and revision ~= known_revision then
  redis.pcall('PUBLISH', QUEUE .. ':changes', '')
end

return reply
