-- Writes the record, and what is kept of the shard if there is anything. The keys outlive all that they reserve by the idle
-- expiry; a paused queue is nobody's to forget.

local keep_for_good, expire_in = paused == 1 and kept_until > 0, nil
if paused == 1 then
  kept_until = 0
else
  -- No lease is longer than an hour.
  local needed = max(free_at, held_until, now) - now + 3600000000 + idle
  if is_new or kept_until < add(now, needed) then
    -- An eighth more, so that not every command has to say it again.
    needed = needed + math.ceil(idle / 8)
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

