-- Carries out one command (`apply` in mod.rs of the rules).
--
-- Arguments: the packed command, a table whose only field is its kind; in tests also the time. The
-- packed answer is a reply, a refusal or a fault.
-- luacheck: std lua51, globals tables work NIL, read globals cjson
-- luacheck: read globals copy redis cmsgpack rows refuse fail variant NAME
-- luacheck: max line length 120
-- luacheck: read globals EDGES BODIES TASKS ROWS INDEX VERSION FILLER

local function clock(notified)
  if notified then
    return tonumber(notified)
  end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Refuses a queue that lacks a key, since writing the key again would hide the loss. From the first
-- command on TASKS and INDEX have a filler, and EDGES has one field for each entry 'D'.
local function check_keys()
  local entries = tables.small.entries
  local has_edges = entries and (entries.D or 0) > 0
  if redis.call('EXISTS', TASKS, INDEX, has_edges and EDGES or INDEX) == 3 then
    return
  end
  for _, key in ipairs({ TASKS, INDEX, EDGES }) do
    if redis.call('EXISTS', key) == 0 then
      fail('lost', key, ROWS)
    end
  end
end

local function stored_queue(step)
  local packed = tables.read_queue(step)
  if not packed then
    if redis.call('EXISTS', ROWS) > 0 then
      fail('foreign', 'there are keys of it, but no row of the queue')
    elseif redis.call('EXISTS', TASKS, BODIES, EDGES, INDEX) > 0 then
      fail('lost', ROWS, ROWS)
    end
    return nil
  end
  local is_read, row = pcall(tables.unpack_kept, packed)
  local queue = is_read and type(row) == 'table' and copy(row) or {}
  local version = queue.version
  if type(version) ~= 'number' then
    fail('foreign', 'the row of the queue has no version')
  elseif version > VERSION then
    fail('newer', version, VERSION)
  elseif version < VERSION then
    fail('older', version, VERSION)
  end
  check_keys()
  tables.small[''] = queue
  return queue
end

-- See command.rs.
local function creates_queue(kind, command)
  local what, of
  if kind == 'change' then
    what, of = variant(command)
  end
  return kind == 'add' or kind == 'step' or what == 'open' or what == 'set' or what == 'pause' or what == 'schedule'
    or (what == 'kind' or what == 'key') and of[2]
end

-- Rights are checked when a queue is created, so no run ends halfway.
local function check_rights()
  for _, command in ipairs({
    { 'HGET', ROWS, '' }, { 'HMGET', ROWS, '' }, { 'HSET', ROWS, '', '' }, { 'HDEL', ROWS, '' }, { 'HLEN', TASKS },
    { 'ZADD', INDEX, '0', '' }, { 'ZREM', INDEX, '' }, { 'ZCARD', INDEX }, { 'ZLEXCOUNT', INDEX, '[a', '[b' },
    { 'ZRANGEBYLEX', INDEX, '[a', '[b' }, { 'ZREVRANGEBYLEX', INDEX, '[b', '[a' }, { 'HMGET', TASKS, '' },
    { 'HSET', BODIES, '', '' }, { 'HSET', EDGES, '', '' }, { 'EXISTS', TASKS },
  }) do
    if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(command)) then
      fail('denied', command[1])
    end
  end
end

local function apply(arguments)
  local kind, command = next(cmsgpack.unpack(arguments[1]))
  local now, queue = clock(arguments[2]), stored_queue(kind == 'step' and command)
  if not queue then
    if not creates_queue(kind, command) then
      refuse('no_queue')
    end
    check_rights()
    tables.filler = true
  end
  work.begin(now, queue)
  local reply = work[kind](command)
  if kind == 'read' then
    return reply
  end
  if work.queue_changed then
    work.queue.version = VERSION
    rows.put_queue(work.queue)
  end
  if work.notifies or next(work.readied) or work.has_made_room() then
    rows.notify()
  end
  tables.flush()
  return kind == 'step' and work.with_leased(reply) or reply
end

local function call(keys, arguments)
  -- Only the cache of `unpack_kept` lasts from one command to the next.
  NIL = cjson.null
  tables.clear()
  tables.of(keys)
  local is_done, reply = pcall(apply, arguments)
  if is_done then
    return cmsgpack.pack({ reply = reply })
  elseif type(reply) == 'table' and (reply.refusal or reply.fault) then
    return cmsgpack.pack(reply)
  end
  error(reply, 0)
end

-- A full server refuses commands that add tasks, but not those that free memory.
redis.register_function({ function_name = NAME .. '_add', callback = call })
redis.register_function({ function_name = NAME .. '_change', callback = call, flags = { 'allow-oom' } })
redis.register_function({ function_name = NAME .. '_look', callback = call, flags = { 'no-writes' } })
