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
  -- A server that evicts keys took the index: it is made anew.
  if known and added > (known_head < 0 and 1 or 0) then
    local all = redis.call('HGETALL', QUEUE)
    for i = 1, #all, 2 do
      if all[i] ~= '' and all[i] ~= ME then
        local its_head, _, its_end = struct.unpack('<ddd', all[i + 1])
        next_end = min(next_end, its_end)
        redis.call('ZADD', INDEX, -1 - its_end, ' ' .. all[i])
        if its_head >= 0 then
          redis.call('ZADD', INDEX, its_head, all[i])
        end
      end
    end
    is_new = true
  end
elseif known then
  shards, running = shards - 1, sub(running, known_running)
  redis.call('HDEL', QUEUE, ME)
  redis.call('ZREM', INDEX, ME, my_lease)
end

