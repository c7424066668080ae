-- What is known of the shard from now on: rules/step.rs.

-- Without a limit nobody needs to know when a job ends, and a short one saves its shard the second command.
local presence, is_new
if head >= 0 or RUNNING > 0 or (max_running > 0 and #starts > 0) then
  local ends, runs = add(now, LEASE), min(RUNNING + #starts, 4294967295)
  presence = struct.pack('<dddddddc0', head, runs, ends, SEQUENCE, last_request, last_first, last_count, LABEL)
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
    -- The index is made anew from the presences.
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

