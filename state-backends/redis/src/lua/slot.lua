-- Which slot a ticket may have: rules/slot.rs. Parameters are named `asked`, as `ticket` is the last one taken.

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

-- How early it may have its slot. While another shard holds a late one, that comes first: a shard with a longer lead
-- would else be served before it for ever.
local function lead_for(asked)
  if first_head <= current and asked > current and not own_slot(first_head, 1) then
    return min(LEAD, 1000)
  end
  return LEAD
end

