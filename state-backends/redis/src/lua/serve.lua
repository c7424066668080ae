-- Takes tickets and grants a leading part of what is asked for: rules/step.rs and rules/slot.rs.

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
    asked, weight = struct.unpack('<dd', ARGV[1], FIRST_ASK + 16 * n)
  else
    asked = add(first, n - ASKS)
    weight = struct.unpack('<d', ARGV[1], FIRST_ASK + 8 * (ASKS + n))
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

