-- When a shard that got no slot asks again: rules/wait.rs.

local function slot_to_ask_for(counter, head, weight)
  local record = counter.record
  local middle = math.floor(lead_for(counter, head) / 2)
  if head <= record.current then
    local slot = own_slot(counter, head, weight)
    if slot then
      return sub(slot, middle)
    end
    return sub(add(base(record), mul(record.interval, rank(counter, head))), counter.lead)
  end
  local ahead = rank(counter, head)
  if ahead == 0 then
    return sub(base(record), middle)
  end
  local distance = sub(by_distance(record, head), middle)
  if distance <= counter.now then
    distance = add(distance, courtesy(counter, head))
  end
  if record.current < record.gaps_until then
    local by_rank = sub(add(base(record), mul(record.interval, ahead)), middle)
    return math.min(distance, math.max(by_rank, add(counter.now, record.interval)))
  end
  return distance
end

-- What the lowest ticket that is left waits for, and until when: { reason, ask_in, shard, ticket }, '' for none.
local function wait(counter, head, weight, lease)
  local reason, shard, ticket = admit(counter), nil, nil
  if reason == 'paused' then
    return { reason, '', '', '' }
  end
  local ask_in = sub(slot_to_ask_for(counter, head, weight), counter.now)
  if not reason then
    reason, shard, ticket = waits_for(counter, head)
  elseif ask_in == 0 then
    -- Until its slot comes a job may end; from then on it has to look.
    ask_in = mul(poll_time(counter.record), rank(counter, head) + 1)
  end
  local next_end_of_a_lease = MOST
  if reason ~= 'slot' then
    local _, ends = first_other(LEASES, counter.me)
    next_end_of_a_lease = ends or MOST
  end
  ask_in = math.min(ask_in, math.floor(lease / 2), sub(next_end_of_a_lease, counter.now))
  return { reason, text(ask_in), shard or '', text(ticket) }
end

