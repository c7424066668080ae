-- A change for all shards as it is wished for, and all that can be wrong with it. Nothing was touched yet.
--
-- ARGV: packed numbers, name of the server, '' for no shard, the change, what to do with a queue that is there. Among
-- the numbers 0 stands for no interval and for any running limit, -1 for the running limit that is stored.

local idle, memory_at, memory_sequence, memory_ticket, memory_current, memory_free_at, memory_revision, memory_interval,
  memory_max_running, memory_paused, memory_held_until, memory_longest_lead, INTERVAL, LIMIT, HOLD
  = struct.unpack('<d ddddddddddd ddd', ARGV[1])
local CHANGE, ON_EXISTING = ARGV[4], ARGV[5]
local known_sequence = math.huge
-- The revision that is stored, which every change raises.
local known_revision = revision

local function is_set()
  return (INTERVAL == 0 or INTERVAL == interval) and (LIMIT < 0 or LIMIT == max_running)
end

-- Every shard opens its queue first: the place to find out what the user may not do, so that no script ends halfway. Redis
-- before 7 cannot tell.
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
local is_new_queue = not found and CHANGE == 'open' and memory_revision == 0
if is_new_queue and INTERVAL > 0 then
  interval, max_running, revision, incarnation = INTERVAL, max(LIMIT, 0), 1, server
  memory_at, memory_ticket, memory_current = 0, 0, 0
elseif not found and memory_revision == 0 then
  return { 'not-found' }
elseif not found then
  interval, max_running = memory_interval, memory_max_running
elseif CHANGE == 'open' and ON_EXISTING == 'fail' and not is_set() then
  return { 'conflict', interval, max_running }
end

