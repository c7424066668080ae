-- What is stored of a queue, and what a command writes of it. All writes are collected and found at once; they are
-- sent at the end, so that a command which is refused has written nothing, and a row that is written several times
-- costs one write.
--
-- Five keys in one hash slot:
--
-- ROWS    a hash: '' the row of the queue; 'kind:…', 'key:…', 'worker:…', 'schedule:…', 'count:…' what their names say;
--         'ids:…' the ids of all tasks, see ids.lua; 'entries' how many entries there are of each letter, so that an
--         index in which there is nothing costs nothing
-- TASKS   a hash of the tasks by id, with payloads and results that are small
-- BODIES  a hash of the larger payloads ('p' and the id) and results ('r' and the id)
-- EDGES   a hash of the edges, by downstream and upstream
-- INDEX   a sorted set of all entries of all indexes, in the order of their bytes, see entry.lua
--
-- Rows are packed by cmsgpack, as tables in which what is the default is left out. An id is its 16 bytes.
-- luacheck: std lua51, read globals redis struct cmsgpack limits, max line length 120
-- luacheck: read globals plain_entry entries_of entries_of_edge entries_of_presence, ignore 211

local ROWS, TASKS, BODIES, EDGES, INDEX
local VERSION = 1
-- Longer payloads and results are not kept with their tasks, so that who looks at tasks need not read them.
local INLINE = 512
-- A short hash or sorted set is a list that is searched from its beginning, unless something in it is longer.
local FILLER = '~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~'
-- The most words of one command.
local MOST = 4000

-- What is left out of a task.
local DEFAULTS = {
  __index = {
    priority = 0, weight = 1, not_before = 0, incarnation = 0, attempt = 0, failures = 0, retries = 0, returns = 0,
    life = 0,
  },
}

local tables = {}

-- A command begins: nothing is collected.
function tables.clear()
  -- By field of ROWS: a row, or `false` for none.
  tables.small, tables.small_written = {}, {}
  -- By kind: the row of those that are counted.
  tables.counts = {}
  -- By id: a task, or `false` for none.
  tables.tasks, tables.tasks_written = {}, {}
  -- The tasks as the entries say.
  tables.indexed, tables.unindexed = {}, {}
  -- By id: the text, `true` if it is among BODIES, or `false` for none.
  tables.payloads, tables.results, tables.bodies_written = {}, {}, {}
  -- By downstream and upstream.
  tables.edges, tables.edges_written = {}, {}
  -- By group: entries that are new or gone.
  tables.pending = {}
  -- What was read of the index.
  tables.read = {}
  -- Whether a key is known to be of its type, since it was read.
  tables.is_read = {}
  tables.filler, tables.nudges, tables.page = false, false, nil
end

function tables.of(keys)
  ROWS, TASKS, BODIES, EDGES, INDEX = keys[1], keys[2], keys[3], keys[4], keys[5]
end

local function copy(row)
  local other = {}
  for name, value in pairs(row) do
    other[name] = value
  end
  return other
end

local function copy_task(x)
  -- What most tasks have is named first, so that the table need not grow.
  local other = {
    id = nil, kind = nil, state = nil, added = nil, due = nil, worker = nil, leased = nil, incarnation = nil,
    attempt = nil, ended = nil, ended_tick = nil, told = nil,
  }
  for name, value in pairs(x) do
    other[name] = value
  end
  return setmetatable(other, DEFAULTS)
end

local function new_task(x)
  return setmetatable(x, DEFAULTS)
end

-- Whether a text comes before another one, byte by byte. Lua compares as the locale of the server does.
local IS_BYTEWISE = 'a' > 'Z' and '\255' > 'a'

local function is_below(a, b)
  if IS_BYTEWISE then
    return a < b
  end
  for at = 1, math.min(#a, #b) do
    local of_a, of_b = string.byte(a, at), string.byte(b, at)
    if of_a ~= of_b then
      return of_a < of_b
    end
  end
  return #a < #b
end

local function sort(texts)
  if IS_BYTEWISE then
    table.sort(texts)
  else
    table.sort(texts, is_below)
  end
end

-- The rows that are few.

function tables.get(field)
  local row = tables.small[field]
  if row == nil then
    local packed = redis.call('HGET', ROWS, field)
    row = packed and cmsgpack.unpack(packed)
    tables.small[field] = row
  end
  return row or nil
end

-- Those letters of which there is always something are not counted.
local UNCOUNTED = { r = true, l = true, e = true, E = true, W = true }

-- How many entries of a letter were stored when the command began, or something above zero.
local function stored_of(letter)
  if UNCOUNTED[letter] then
    return 1
  end
  local entries = tables.get('entries')
  return entries and entries[letter] or 0
end

function tables.get_all(fields)
  local missing = {}
  for _, field in ipairs(fields) do
    if tables.small[field] == nil then
      missing[#missing + 1] = field
    end
  end
  for first = 1, #missing, MOST do
    local last = math.min(first + MOST - 1, #missing)
    for n, packed in ipairs(redis.call('HMGET', ROWS, unpack(missing, first, last))) do
      tables.small[missing[first + n - 1]] = packed and cmsgpack.unpack(packed)
    end
  end
end

-- Reads rows of which the first is that of the queue, and gives that as it is packed.
function tables.read_queue(fields)
  local found = redis.call('HMGET', ROWS, unpack(fields))
  for n = 2, #fields do
    local packed = found[n]
    tables.small[fields[n]] = packed and cmsgpack.unpack(packed)
  end
  return found[1]
end

-- `nil` removes it.
function tables.set(field, row)
  tables.small[field] = row or false
  tables.small_written[field] = true
end

-- Tasks.

local function unpack_task(id, packed)
  local x = setmetatable(cmsgpack.unpack(packed), DEFAULTS)
  tables.payloads[id], tables.results[id] = x.payload or false, x.result or false
  x.id, x.due, x.payload, x.result = id, x.due or x.added, nil, nil
  return x
end

local function pack_task(id, x)
  local due = x.due
  x.id, x.due, x.payload, x.result = nil, due ~= x.added and due or nil, nil, nil
  local payload, result = tables.payloads[id], tables.results[id]
  if payload then
    x.payload = (payload == true or #payload > INLINE) and true or payload
  end
  if result then
    x.result = (result == true or #result > INLINE) and true or result
  end
  local packed = cmsgpack.pack(x)
  x.id, x.due, x.payload, x.result = id, due, nil, nil
  return packed
end

-- Reads those of these tasks that were not read yet, in one go.
function tables.load(ids)
  local missing = {}
  for _, id in ipairs(ids) do
    if tables.tasks[id] == nil then
      tables.tasks[id], tables.indexed[id] = false, false
      missing[#missing + 1] = id
    end
  end
  tables.is_read[TASKS] = tables.is_read[TASKS] or #missing > 0
  for first = 1, #missing, MOST do
    local last = math.min(first + MOST - 1, #missing)
    for n, packed in ipairs(redis.call('HMGET', TASKS, unpack(missing, first, last))) do
      if packed then
        local id = missing[first + n - 1]
        local x = unpack_task(id, packed)
        tables.tasks[id], tables.indexed[id] = x, x
      end
    end
  end
end

function tables.task(id)
  if tables.tasks[id] == nil then
    tables.load({ id })
  end
  return tables.tasks[id] or nil
end

-- `nil` removes it.
function tables.set_task(id, x)
  tables.tasks[id] = x or false
  tables.tasks_written[id], tables.unindexed[id] = true, true
end

function tables.body(bodies, letter, id)
  tables.task(id)
  local body = bodies[id]
  if body == true then
    body = redis.call('HGET', BODIES, letter .. id)
  end
  return body or nil
end

-- `nil` removes it.
function tables.set_body(bodies, letter, id, body)
  tables.task(id)
  local is_written = tables.bodies_written[letter .. id] ~= nil
  if not is_written and (bodies[id] == true or body and #body > INLINE) then
    -- Whether one is stored.
    tables.bodies_written[letter .. id] = bodies[id] == true
  end
  bodies[id] = body or false
  if tables.tasks[id] then
    tables.tasks_written[id] = true
  end
end

-- Edges.

function tables.load_edges(names)
  local missing = {}
  for _, name in ipairs(names) do
    if tables.edges[name] == nil then
      tables.edges[name] = false
      missing[#missing + 1] = name
    end
  end
  for first = 1, #missing, MOST do
    local last = math.min(first + MOST - 1, #missing)
    for n, packed in ipairs(redis.call('HMGET', EDGES, unpack(missing, first, last))) do
      if packed then
        local name = missing[first + n - 1]
        local edge = cmsgpack.unpack(packed)
        edge.down, edge.up = string.sub(name, 1, 16), string.sub(name, 17)
        tables.edges[name] = edge
      end
    end
  end
end

-- The index. An entry belongs to a group, its beginning. A look stays within one.

local function pending_of(group)
  local some = tables.pending[group]
  if not some then
    some = { new = {}, news = 0, gone = {}, gones = 0 }
    tables.pending[group] = some
  end
  return some
end

-- Where an entry is in a sorted list, or is to be.
local function place(list, entry)
  local low, high = 1, #list + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_below(list[middle], entry) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

function tables.add_entry(group, entry)
  local some = pending_of(group)
  if some.gone[entry] then
    some.gone[entry], some.gones = nil, some.gones - 1
  elseif not some.new[entry] then
    some.new[entry], some.news = true, some.news + 1
    if some.sorted then
      table.insert(some.sorted, place(some.sorted, entry), entry)
    end
  end
end

function tables.remove_entry(group, entry)
  local some = pending_of(group)
  if some.new[entry] then
    some.new[entry], some.news = nil, some.news - 1
    if some.sorted then
      table.remove(some.sorted, place(some.sorted, entry))
    end
  elseif not some.gone[entry] then
    some.gone[entry], some.gones = true, some.gones + 1
  end
end

local function replace_entries(old, new)
  for entry, group in pairs(old) do
    if not new[entry] then
      tables.remove_entry(group, entry)
    end
  end
  for entry, group in pairs(new) do
    if not old[entry] then
      tables.add_entry(group, entry)
    end
  end
end

function tables.set_edge(edge, is_gone)
  local name = edge.down .. edge.up
  tables.load_edges({ name })
  local was = tables.edges[name]
  replace_entries(was and entries_of_edge(was) or {}, is_gone and {} or entries_of_edge(edge))
  tables.edges[name] = not is_gone and edge
  tables.edges_written[name] = true
end

-- A heartbeat leaves the entries where they are: a presence is listed by the end of an earlier lease until a look for
-- such ends finds that it has another one.
function tables.set_presence(worker, presence)
  local was = tables.get('worker:' .. worker)
  if presence then
    local stays = was and not was.cleared == not presence.cleared and not was.busy == not presence.busy
      and was.lease == presence.lease and presence.ends >= was.listed
    presence.listed = stays and was.listed or presence.ends
    if stays then
      return tables.set('worker:' .. worker, presence)
    end
  end
  replace_entries(was and entries_of_presence(worker, was) or {},
    presence and entries_of_presence(worker, presence) or {})
  tables.set('worker:' .. worker, presence)
end

function tables.relist(worker, presence)
  local was = tables.get('worker:' .. worker)
  presence.listed = presence.ends
  replace_entries(entries_of_presence(worker, was), entries_of_presence(worker, presence))
  tables.set('worker:' .. worker, presence)
end

-- Entries of edges and of pages are brought up to date at once.
local IMMEDIATE = { F = true, D = true, I = true }

-- Brings the entries up to date with the tasks that were written since the last look.
function tables.index_tasks()
  if not next(tables.unindexed) then
    return
  end
  local new = {}
  for id in pairs(tables.unindexed) do
    local before, after = tables.indexed[id], tables.tasks[id]
    if after and not before then
      new[#new + 1] = id
    elseif before and not after then
      tables.remove_id(id)
    end
    -- Most tasks have one entry.
    local is_plain, group, rest, was_plain, old_group, old_rest = true, nil, nil, true, nil, nil
    if after then
      is_plain, group, rest = plain_entry(after)
    end
    if before then
      was_plain, old_group, old_rest = plain_entry(before)
    end
    if is_plain and was_plain then
      if old_group ~= group or old_rest ~= rest then
        if old_group then
          tables.remove_entry(old_group, old_group .. old_rest)
        end
        if group then
          tables.add_entry(group, group .. rest)
        end
      end
    else
      replace_entries(before and entries_of(before) or {}, after and entries_of(after) or {})
    end
    tables.indexed[id] = after
  end
  tables.unindexed = {}
  -- In their order, which is that of the pages.
  sort(new)
  for _, id in ipairs(new) do
    tables.add_id(id)
  end
end

-- The first that is not in a group any more.
local function behind(group)
  return string.sub(group, 1, -2) .. string.char(string.byte(group, -1) + 1)
end

-- The entries of the index between two bounds, as they were when the command began: at least so many, if there are.
local function read_index(low, high, backwards, most)
  local name = low .. high .. (backwards and '-' or '+')
  local read = tables.read[name]
  if not read then
    read = { entries = {}, is_all = stored_of(string.sub(low, 2, 2)) == 0 }
    tables.read[name] = read
  end
  local have = #read.entries
  if have < most and not read.is_all then
    local found
    tables.is_read[INDEX] = true
    if backwards then
      found = redis.call('ZREVRANGEBYLEX', INDEX, high, low, 'LIMIT', have, most - have)
    else
      found = redis.call('ZRANGEBYLEX', INDEX, low, high, 'LIMIT', have, most - have)
    end
    for n, entry in ipairs(found) do
      read.entries[have + n] = entry
    end
    read.is_all = #found < most - have
  end
  return read
end

-- At most so many entries of a group, in their order: from what follows the group in `from` on, up to before `to`.
function tables.look(group, from, to, most, backwards)
  local letter = string.sub(group, 1, 1)
  if not IMMEDIATE[letter] and next(tables.unindexed) then
    tables.index_tasks()
  end
  local some = tables.pending[group]
  if not some and stored_of(letter) == 0 then
    return {}
  end
  local low, high = group .. (from or ''), to and group .. to or behind(group)
  if not some or some.news + some.gones == 0 then
    local entries = read_index('[' .. low, '(' .. high, backwards, most).entries
    if #entries <= most then
      return entries
    end
    local first = {}
    for n = 1, most do
      first[n] = entries[n]
    end
    return first
  end
  if some.news > 0 and not some.sorted then
    some.sorted = {}
    for entry in pairs(some.new) do
      some.sorted[#some.sorted + 1] = entry
    end
    sort(some.sorted)
  end
  -- Both are gone through side by side.
  local new = some.sorted or {}
  local at, last, step = place(new, low), place(new, high) - 1, 1
  if backwards then
    at, last, step = last, at, -1
  end
  local found, read, have = {}, nil, 0
  while #found < most do
    local stored
    repeat
      have = have + 1
      if not read or have > #read.entries and not read.is_all then
        read = read_index('[' .. low, '(' .. high, backwards, have + most - 1 + math.min(some.gones, 100))
      end
      stored = read.entries[have]
    until not stored or not some.gone[stored]
    -- Those that are new and come before it.
    while (last - at) * step >= 0 and #found < most
      and (not stored or is_below(new[at], stored) == (step == 1))
    do
      found[#found + 1] = new[at]
      at = at + step
    end
    if not stored then
      break
    elseif #found < most then
      found[#found + 1] = stored
    end
  end
  return found
end

-- How many entries a group has.
function tables.count_entries(group)
  tables.index_tasks()
  local some, stored = tables.pending[group], 0
  if stored_of(string.sub(group, 1, 1)) > 0 then
    stored = redis.call('ZLEXCOUNT', INDEX, '[' .. group, '(' .. behind(group))
  end
  return stored + (some and some.news - some.gones or 0)
end

-- Reads what the rules will ask of new tasks.
function tables.load_new(new_tasks)
  local ids = {}
  for _, new in ipairs(new_tasks) do
    ids[#ids + 1] = new.id
    for _, edge in ipairs(new.edges or {}) do
      ids[#ids + 1] = edge[1]
    end
  end
  tables.load(ids)
end

-- What was collected is sent.

local function send(verb, key, words)
  for first = 1, #words, MOST do
    redis.call(verb, key, unpack(words, first, math.min(first + MOST - 1, #words)))
  end
end

-- Counts the entries that are new or gone.
local function count_new()
  local entries = tables.get('entries')
  local counts = not entries and {}
  for group, some in pairs(tables.pending) do
    local letter, more = string.sub(group, 1, 1), some.news - some.gones
    if more ~= 0 and not UNCOUNTED[letter] then
      counts = counts or copy(entries)
      counts[letter] = (counts[letter] or 0) + more
    end
  end
  if counts then
    tables.set('entries', counts)
  end
end

function tables.flush()
  tables.index_tasks()
  count_new()
  local rows, no_rows = {}, {}
  for field in pairs(tables.small_written) do
    local row = tables.small[field]
    if row then
      rows[#rows + 1] = field
      rows[#rows + 1] = cmsgpack.pack(row)
    else
      no_rows[#no_rows + 1] = field
    end
  end
  local tasks, no_tasks, bodies, no_bodies = {}, {}, {}, {}
  for name, was_stored in pairs(tables.bodies_written) do
    local id = string.sub(name, 2)
    local body = (string.byte(name) == 112 and tables.payloads or tables.results)[id]
    if body and #body > INLINE then
      bodies[#bodies + 1] = name
      bodies[#bodies + 1] = body
    elseif was_stored then
      no_bodies[#no_bodies + 1] = name
    end
  end
  for id in pairs(tables.tasks_written) do
    local x = tables.tasks[id]
    if x then
      tasks[#tasks + 1] = id
      tasks[#tasks + 1] = pack_task(id, x)
    else
      no_tasks[#no_tasks + 1] = id
    end
  end
  local edges, no_edges = {}, {}
  for name in pairs(tables.edges_written) do
    local edge = tables.edges[name]
    if edge then
      edges[#edges + 1] = name
      local up, down = edge.up, edge.down
      edge.up, edge.down = nil, nil
      edges[#edges + 1] = cmsgpack.pack(edge)
      edge.up, edge.down = up, down
    else
      no_edges[#no_edges + 1] = name
    end
  end
  local entries, no_entries = {}, {}
  for _, some in pairs(tables.pending) do
    for entry in pairs(some.new) do
      entries[#entries + 1] = '0'
      entries[#entries + 1] = entry
    end
    for entry in pairs(some.gone) do
      no_entries[#no_entries + 1] = entry
    end
  end
  -- That a key is of another type is an error before anything is written.
  if not tables.is_read[INDEX] then
    redis.call('ZCARD', INDEX)
  end
  if not tables.is_read[TASKS] then
    redis.call('HLEN', TASKS)
  end
  if #edges + #no_edges > 0 then
    redis.call('HLEN', EDGES)
  end
  if #bodies + #no_bodies > 0 then
    redis.call('HLEN', BODIES)
  end
  if tables.filler then
    tasks[#tasks + 1] = ''
    tasks[#tasks + 1] = FILLER
    entries[#entries + 1] = '0'
    entries[#entries + 1] = FILLER
  end
  send('HSET', ROWS, rows)
  send('HSET', TASKS, tasks)
  send('HSET', BODIES, bodies)
  send('HSET', EDGES, edges)
  send('ZADD', INDEX, entries)
  send('ZREM', INDEX, no_entries)
  send('HDEL', EDGES, no_edges)
  send('HDEL', BODIES, no_bodies)
  send('HDEL', TASKS, no_tasks)
  send('HDEL', ROWS, no_rows)
  -- A user without the right to tell has made the change all the same.
  if tables.nudges then
    redis.pcall('PUBLISH', ROWS .. ':changes', '')
  end
end
