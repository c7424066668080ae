-- What the lowest ticket that is left waits for, and when its shard asks again: rules/wait.rs.

local reason, ask_in = '', -1
if head < 0 then
  -- Nothing is left.
elseif refused and refused ~= 'missed' then
  reason = refused
elseif paused == 1 then
  reason = 'paused'
elseif all_running >= limit then
  reason = 'at-max-running'
else
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
    -- One after the other: a thousand would all ask in the same instant. Little, since those before it may be dead, too.
    local turn = mul(min(interval, 1000), max(rank(head) - 1, 0))
    next_end = others > 0 and find_next_end() or 2^53 - 1
    ask_in = min(ask_in, sub(add(next_end, turn), now))
  end
end
if refused == 'missed' then
  reason = 'missed'
end

