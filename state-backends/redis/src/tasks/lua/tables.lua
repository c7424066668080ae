-- The stored rows of a queue, and the writes of a command. Writes are visible at once and sent at
-- the end: a refused command has written nothing, and a row costs one write.
--
-- Five keys in one hash slot:
--
-- ROWS: a hash. '' is the queue; 'kind:…', 'key:…', 'worker:…', 'schedule:…' and 'count:…' rows of
-- these; 'times:…' run times and events by hour and kind, 'hours' the hours with times, 'days:…'
-- events by day; 'event:…' events while there is a follower, 'events' their first and last numbers;
-- 'levels:…' the priorities of a kind; '#…' pages (pages.lua); 'entries' the number of entries by
-- other letters, so that an empty index costs nothing.
--
-- TASKS: a hash of the tasks by id, with small payloads and results (forms.lua).
--
-- BODIES: a hash of larger payloads ('p' and the id), results ('r'), and logs ('l'). A task with a
-- log has the field `logged`.
--
-- EDGES: a hash of the edges, by downstream and upstream.
--
-- INDEX: a sorted set of all other indexes' entries, in the order of their bytes (entry.lua).
--
-- Rows are packed by cmsgpack, as tables without defaults. An id is its 16 bytes.
-- luacheck: std lua51, read globals redis struct cmsgpack limits, max line length 120
-- luacheck: read globals plain_row task_of_row INLINE fail, ignore 211 231

local ROWS, TASKS, BODIES, EDGES, INDEX
local VERSION = 4
-- Longer than the limit of the compact encoding, which is searched linearly.
local FILLER = '~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~'
local MAX_ARGUMENTS = 4000

local DEFAULTS = {
  __index = {
    priority = 0, weight = 1, not_before = 0, token = { 0, 0 }, failures = 0, retries = 0, returns = 0,
    generation = 0,
  },
}

local tables = {}

function tables.clear()
  -- By field of ROWS; `false`: none.
  tables.small, tables.small_written = {}, {}
  tables.counts = {}
  -- Only of this hour.
  tables.times = {}
  -- By id; `false`: none.
  tables.rows, tables.rows_written = {}, {}
  -- By id. `rows` gets written tasks only at the end.
  tables.tasks, tables.tasks_written = {}, {}
  -- Tasks as in the index entries.
  tables.indexed, tables.unindexed = {}, {}
  -- By id: the text, `true` if it is in BODIES, `false` for none.
  tables.payloads, tables.results, tables.bodies_written = {}, {}, {}
  -- By id: the log, and whether one was stored before a write.
  tables.logs, tables.logs_written = {}, {}
  tables.bodies = {}
  -- By downstream and upstream.
  tables.edges, tables.edges_written = {}, {}
  -- By group: added and removed entries.
  tables.pending = {}
  -- Parts of the index; pages by name; names by group.
  tables.read, tables.pages, tables.names = {}, {}, {}
  -- Whether a read has shown the type of a key.
  tables.is_read = {}
  tables.filler, tables.notifies = false, false
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
  -- Common fields come first, so that the table need not grow.
  local other = {
    id = nil, kind = nil, state = nil, added = nil, due = nil, worker = nil, leased = nil, token = nil,
    ended = nil, ended_lease_clock = nil, notified = nil,
  }
  for name, value in pairs(x) do
    other[name] = value
  end
  return setmetatable(other, DEFAULTS)
end

local function new_task(x)
  return setmetatable(x, DEFAULTS)
end

-- Unpacked rows by text, kept between commands. Such a row is copied before a change.
local kept, count_kept = {}, 0

function tables.unpack_kept(packed)
  local row = kept[packed]
  if not row then
    if count_kept == 1000 then
      kept, count_kept = {}, 0
    end
    row = cmsgpack.unpack(packed)
    kept[packed], count_kept = row, count_kept + 1
  end
  return row
end

function tables.get(field)
  local row = tables.small[field]
  if row == nil then
    local packed = redis.call('HGET', ROWS, field)
    row = packed and cmsgpack.unpack(packed)
    tables.small[field] = row
  end
  return row or nil
end

function tables.get_all(fields)
  local missing = {}
  for _, field in ipairs(fields) do
    if tables.small[field] == nil then
      missing[#missing + 1] = field
    end
  end
  for first = 1, #missing, MAX_ARGUMENTS do
    local last = math.min(first + MAX_ARGUMENTS - 1, #missing)
    for n, packed in ipairs(redis.call('HMGET', ROWS, unpack(missing, first, last))) do
      tables.small[missing[first + n - 1]] = packed and cmsgpack.unpack(packed)
    end
  end
end

-- Reads all rows that every step needs. Returns the packed row of the queue.
function tables.read_queue(step)
  local small, fields = tables.small, { '', 'entries' }
  if step then
    fields[3] = 'worker:' .. step.worker
    for _, kind in ipairs(step.kinds) do
      local n = #fields
      fields[n + 1], fields[n + 2], fields[n + 3] = 'kind:' .. kind, 'count:' .. kind, 'levels:' .. kind
    end
  end
  local found = redis.call('HMGET', ROWS, unpack(fields))
  small.entries = found[2] and tables.unpack_kept(found[2])
  if step then
    small[fields[3]] = found[3] and cmsgpack.unpack(found[3])
    for n = 4, #fields, 3 do
      local kind, count, priorities = found[n], found[n + 1], found[n + 2]
      small[fields[n]] = kind and tables.unpack_kept(kind)
      small[fields[n + 1]] = count and cmsgpack.unpack(count)
      small[fields[n + 2]] = priorities and tables.unpack_kept(priorities)
    end
  end
  return found[1]
end

-- `nil` removes the row.
function tables.set(field, row)
  tables.small[field] = row or false
  tables.small_written[field] = true
end

local function pack_task(id, x)
  local payload, result = tables.payloads[id], tables.results[id]
  local row = plain_row(x, payload, result)
  if row then
    return row
  end
  x.id = nil
  x.payload = payload and ((payload == true or #payload > INLINE) and true or payload) or nil
  x.result = result and ((result == true or #result > INLINE) and true or result) or nil
  row = cmsgpack.pack(x)
  x.id, x.payload, x.result = id, nil, nil
  return row
end

function tables.load(ids)
  local missing, all = {}, tables.rows
  for _, id in ipairs(ids) do
    if all[id] == nil then
      all[id] = false
      missing[#missing + 1] = id
    end
  end
  if #missing == 0 then
    return
  end
  tables.is_read[TASKS] = true
  for first = 1, #missing, MAX_ARGUMENTS do
    local last = math.min(first + MAX_ARGUMENTS - 1, #missing)
    for n, row in ipairs(redis.call('HMGET', TASKS, unpack(missing, first, last))) do
      all[missing[first + n - 1]] = row
    end
  end
end

function tables.task(id)
  local x = tables.tasks[id]
  if x == nil then
    tables.load({ id })
    x = tables.rows[id]
    if x then
      x, tables.payloads[id], tables.results[id] = task_of_row(id, x)
      setmetatable(x, DEFAULTS)
    end
    tables.tasks[id], tables.indexed[id] = x, x
  end
  return x or nil
end

-- Nil if the task was unpacked or has another form.
function tables.plain(id, form)
  if tables.tasks[id] == nil then
    local row = tables.rows[id]
    return row and string.byte(row) == form and row
  end
end

-- The caller updates its entries.
function tables.set_plain(id, row)
  tables.rows[id], tables.rows_written[id] = row, true
end

-- `nil` removes the task.
function tables.set_task(id, x)
  tables.tasks[id] = x or false
  tables.tasks_written[id], tables.unindexed[id] = true, true
end

function tables.body(bodies, letter, id)
  tables.task(id)
  local body = bodies[id]
  if body == true then
    body = tables.bodies[letter .. id] or redis.call('HGET', BODIES, letter .. id)
    if not body then
      fail('lost', BODIES, ROWS)
    end
    tables.bodies[letter .. id] = body
  end
  return body or nil
end

-- `nil` removes the text.
function tables.set_body(bodies, letter, id, body)
  tables.task(id)
  local is_written = tables.bodies_written[letter .. id] ~= nil
  if not is_written and (bodies[id] == true or body and #body > INLINE) then
    tables.bodies_written[letter .. id] = bodies[id] == true
  end
  bodies[id] = body or false
  if tables.tasks[id] then
    tables.tasks_written[id] = true
  end
end

function tables.log(id)
  local x, log = tables.task(id), tables.logs[id]
  if log == nil and x and x.logged then
    local packed = redis.call('HGET', BODIES, 'l' .. id)
    if not packed then
      fail('lost', BODIES, ROWS)
    end
    log = cmsgpack.unpack(packed)
    tables.logs[id] = log
  end
  return log or {}
end

-- An empty list removes the log.
function tables.set_log(id, log)
  local x = tables.task(id)
  local logged = #log > 0 or nil
  if not x or not logged and not x.logged then
    return
  end
  if tables.logs_written[id] == nil then
    tables.logs_written[id] = x.logged or false
  end
  tables.logs[id] = log
  if x.logged ~= logged then
    local after = copy_task(x)
    after.logged = logged
    tables.set_task(id, after)
  end
end

function tables.load_edges(names)
  local missing = {}
  for _, name in ipairs(names) do
    if tables.edges[name] == nil then
      tables.edges[name] = false
      missing[#missing + 1] = name
    end
  end
  for first = 1, #missing, MAX_ARGUMENTS do
    local last = math.min(first + MAX_ARGUMENTS - 1, #missing)
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

function tables.load_new(new_tasks)
  local ids = {}
  for _, new in ipairs(new_tasks) do
    ids[#ids + 1] = new[1] or new.id
    for _, edge in ipairs(new.edges or {}) do
      ids[#ids + 1] = edge[1]
    end
  end
  tables.load(ids)
end

