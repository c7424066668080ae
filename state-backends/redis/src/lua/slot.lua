-- Which slot a ticket may have, and what granting it does to the record: rules/slot.rs.
-- A counter is { record, me, my_head (as stored), now, lead, late, running }.

local MIN_POLL, MAX_POLL = 10000, 100000
local YIELDING_LEAD = 1000

local function admit(counter)
  if counter.record.paused then
    return 'paused'
  end
  if is_full(counter.record, counter.running) then
    return 'at-max-running'
  end
  return nil
end

-- How often the first in line asks for room to run.
local function poll_time(record)
  return math.min(math.max(record.interval, MIN_POLL), MAX_POLL)
end

local function base(record)
  return math.max(record.free_at, record.held_until)
end

-- The slot of a ticket that was overtaken but not forgotten. A heavy job does not fit in between.
local function own_slot(counter, ticket, weight)
  local record = counter.record
  -- Behind the last ticket of all there is none to count from.
  local countable = record.current < MOST
  if weight > 1 or ticket > record.current or ticket < record.line_from or not countable then
    return nil
  end
  local back = mul(record.interval, sub(add(record.current, 1), ticket))
  if record.free_at >= add(counter.now, back) then
    return record.free_at - back
  end
  return nil
end

-- How many other shards hold a ticket before this one.
local function rank(counter, ticket)
  local before = redis.call('ZCOUNT', HEADS, '-inf', '(' .. text(ticket))
  local me = counter.my_head and counter.my_head < ticket
  return me and before - 1 or before
end

-- Its own place, whether or not those before it use theirs.
local function by_distance(record, ticket)
  return add(base(record), mul(record.interval, sub(ticket, add(record.current, 1))))
end

-- The time that those before it have to notice that there is room to run again, if there is none for more.
local function courtesy(counter, ticket)
  local record, running = counter.record, counter.running
  local scarce = not is_full(record, running) and is_full(record, running + rank(counter, ticket))
  return scarce and mul(poll_time(record), 2) or 0
end

-- How early the ticket may have its slot. While another shard holds a late one, that comes first: a shard with a longer
-- lead would else be served before it for ever.
local function lead_for(counter, ticket)
  local _, head = first_other(HEADS, counter.me)
  local current = counter.record.current
  if ticket > current and head and head <= current and not own_slot(counter, head, 1) then
    return math.min(counter.lead, YIELDING_LEAD)
  end
  return counter.lead
end

local function due(counter, ticket)
  local record = counter.record
  if ticket <= record.current or rank(counter, ticket) == 0 then
    return base(record)
  end
  return add(by_distance(record, ticket), courtesy(counter, ticket))
end

-- What an admitted ticket waits for: the reason, and the shard and ticket that are first, if they are before it.
local function waits_for(counter, ticket)
  local shard, head = first_other(HEADS, counter.me)
  if shard and head < ticket then
    return 'behind', shard, head
  end
  return 'slot'
end

-- The slot granted; or nil and what the ticket waits for.
local function grant(counter, ticket, weight)
  local refused = admit(counter)
  if refused then
    return nil, refused
  end
  local record = counter.record
  local own = own_slot(counter, ticket, weight)
  if own then
    counter.running = counter.running + 1
    return own
  end
  local overtaken = ticket <= record.current
  if overtaken and counter.late == 'requeue' then
    return nil, 'missed'
  end
  local due_at = due(counter, ticket)
  if due_at > add(counter.now, lead_for(counter, ticket)) then
    return nil, 'not-yet'
  end
  local slot = math.max(due_at, counter.now)
  local in_line = slot == by_distance(record, ticket)
  -- Whatever moves slots against tickets makes an overtaken ticket lose the slot it had by distance.
  if overtaken then
    break_line(record, add(record.current, 1))
  elseif weight > 1 then
    break_line(record, add(ticket, 1))
  elseif not in_line then
    break_line(record, ticket)
  end
  record.current = math.max(record.current, ticket)
  record.free_at = add(slot, mul(record.interval, weight))
  counter.running = counter.running + 1
  return slot
end

