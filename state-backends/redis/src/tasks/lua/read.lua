-- Reads, which change nothing (read.rs).
-- luacheck: std lua51, read globals tables rows State STATES limits is_ended plus minus hour_of NIL variant fail
-- luacheck: globals work, max line length 120

-- Per reply: edges, inputs and held tasks.
local MAX_LISTED = 100
-- An overview finds the longest ready task among this number of the most urgent.
local OVERVIEW_READY = 20

local read = {}
local living

function work.read(asked)
  -- Silence counts in full, also while no worker steps.
  work.lease_clock = plus(work.queue.lease_clock, minus(work.now, work.queue.seen))
  local what, of = variant(asked)
  return (read[what] or fail('unknown', 'the look ' .. what))(of)
end

local function stored(x, payload, result, log, upstreams, downstreams, why)
  return { x, payload or NIL, result or NIL, log or {}, upstreams or {}, downstreams or {}, why or NIL }
end

local function size_of(payload, result, log)
  local size = #(payload or '') + #(result or '')
  for _, line in ipairs(log or {}) do
    size = size + #line[4] + limits.LOG_LINE_BYTES
  end
  return size
end

function read.clock()
  return work.now
end

function read.tasks(ids)
  local found, size = {}, 0
  living = nil
  tables.load(ids)
  for n, id in ipairs(ids) do
    local x = rows.task(id)
    found[n] = NIL
    if x then
      local payload, result, log = rows.payload(id), rows.result(id), rows.log(id)
      found[n] = stored(x, payload, result, log, rows.edges_to(id, nil, nil, MAX_LISTED),
        rows.edges_from(id, nil, MAX_LISTED), work.why(x))
      size = size + size_of(payload, result, log)
    end
    if size > limits.MAX_REPLY then
      break
    end
  end
  return found
end

local function has(list, one)
  for _, other in ipairs(list) do
    if other == one then
      return true
    end
  end
  return #list == 0
end

local function number_of(counts, kinds, states)
  local number = 0
  for _, counted in ipairs(counts) do
    local state = counted[2]
    if state <= State.Purged and has(kinds, counted[1]) and has(states, state)
      and (state ~= State.Purged or #states > 0)
    then
      number = number + counted[3]
    end
  end
  return number
end

-- Counts exist by kind and state only.
local function is_counted(selector)
  for name, value in pairs(selector) do
    local is_empty = type(value) == 'table' and #value == 0
    if name ~= 'states' and name ~= 'kinds' and not is_empty then
      return false
    end
  end
  return true
end

local function counts_none(selector)
  return (#selector.states > 0 or #selector.kinds > 0)
    and number_of(rows.counts(), selector.kinds, selector.states) == 0
end

local function numbered(selector)
  for n, name in ipairs(selector.states) do
    selector.states[n] = STATES[name]
  end
  return selector
end

function read.page(asked)
  local page, size, selector = {}, 0, numbered(asked.selector)
  if counts_none(selector) then
    return { page, NIL, false }
  end
  local found, next = work.select(selector, asked.after, asked.limit)
  for n, x in ipairs(found) do
    local payload, result
    if asked.bodies then
      payload, result = rows.payload(x.id), rows.result(x.id)
      size = size + size_of(payload, result)
    end
    page[n] = stored(x, payload, result)
    if size > limits.MAX_REPLY then
      return { page, work.cursor_of(asked.after.order, x), false }
    end
  end
  local miscounted = not next and work.is_start(asked.after) and asked.after.order ~= 'ended' and is_counted(selector)
    and number_of(rows.counts(), selector.kinds, selector.states) ~= #found
  return { page, next or NIL, miscounted }
end

function read.count(asked)
  local selector = numbered(asked.selector)
  if not asked.after and is_counted(selector) then
    return { number = number_of(rows.counts(), selector.kinds, selector.states) }
  elseif counts_none(selector) then
    return { number = 0 }
  end
  local found, next = work.select(selector, asked.after, limits.MAX_SCANNED)
  return { number = #found, next = next }
end

function read.downstreams(asked)
  local ids = {}
  for n, edge in ipairs(rows.edges_from(asked.up, asked.after, limits.MAX_PAGE)) do
    ids[n] = edge.down
  end
  return ids
end

function read.inputs(asked)
  local inputs, size = {}, 0
  local edges = rows.edges_to(asked.down, nil, asked.after, MAX_LISTED)
  for n, edge in ipairs(edges) do
    local up = rows.task(edge.up)
    local state = up and up.state or State.Purged
    local result = state == State.Done and rows.result(edge.up) or nil
    size = size + #(result or '')
    inputs[n] = { edge.name or NIL, edge.up, edge.on_failure, state, result or NIL }
    if size > limits.MAX_REPLY then
      return { inputs, edge.up }
    end
  end
  return { inputs, #edges == MAX_LISTED and edges[#edges].up or NIL }
end

function read.workers()
  local workers = {}
  for _, presence in ipairs(rows.presences()) do
    local holds = {}
    for m, x in ipairs(rows.held_by(presence.worker, MAX_LISTED)) do
      holds[m] = { x.id, x.token }
    end
    local alive_for = presence.ends > work.lease_clock and presence.ends - work.lease_clock or nil
    -- The maintenance may not have removed expired workers yet.
    if presence.busy or presence.seen + presence.lease + limits.KEEP_PRESENCE >= work.now then
      workers[#workers + 1] = { presence, alive_for or NIL, holds }
    end
  end
  return workers
end

function read.schedules()
  return rows.schedules()
end

function read.upcoming(limit)
  local kinds = {}
  for _, counted in ipairs(rows.counts()) do
    if counted[2] == State.Ready and counted[3] > 0 then
      kinds[#kinds + 1] = counted[1]
    end
  end
  return rows.ready(kinds, nil, limit)
end

function read.key_limit(key)
  local row = rows.key(key)
  return row and row.limit or NIL
end

function read.ready(kinds)
  return not work.queue.paused and #rows.ready(kinds, nil, 1) > 0
end

local function serves(worker, kind)
  for _, one in ipairs(worker.kinds) do
    if one == kind then
      return true
    end
  end
  return false
end

-- Nil: a worker takes it, or there is none.
local function none_takes(x)
  living = living or rows.presences()
  local lowest, is_full = nil, false
  for _, worker in ipairs(living) do
    if worker.ends > work.lease_clock and serves(worker, x.kind) then
      if worker.at_least and (x.priority or 0) < worker.at_least then
        lowest = math.min(lowest or worker.at_least, worker.at_least)
      elseif worker.room and worker.room < (x.weight or 1) then
        is_full = true
      else
        return nil
      end
    end
  end
  return is_full and 'capacity' or lowest and { load = lowest }
end

function work.why(x)
  local state = x.state
  if state == State.Leased then
    local presence = x.worker and rows.presence(x.worker)
    return (not presence or presence.ends <= work.lease_clock) and 'lost' or nil
  elseif is_ended(state) then
    return nil
  elseif state == State.Added then
    return 'no_step'
  elseif state == State.Waiting then
    return 'upstreams'
  elseif state == State.Scheduled then
    return { time = minus(x.not_before, work.now) }
  end
  local row = rows.kind(x.kind)
  if row and row.paused then
    return 'kind_paused'
  elseif not row or row.served_until <= work.lease_clock then
    return 'unserved'
  elseif state == State.Blocked and x.key then
    if work.key_limit(x.key) == 0 then
      return 'key_paused'
    end
    local first = rows.first_in_line(x.key)
    return { key = first and first.id ~= x.id and first.id or NIL }
  elseif work.queue.paused then
    return 'paused'
  end
  local limit = work.queue.settings.max_running
  if limit and rows.leased() >= limit then
    return 'limit'
  end
  return none_takes(x) or 'next'
end

function read.times(asked)
  return rows.times(asked.kind, hour_of(asked.from))
end

function read.days(asked)
  local hour = hour_of(asked.from)
  return rows.times(asked.kind, hour - hour % 24)
end

-- Task::ready_since.
local function ready_since(x)
  local last = x.history and x.history[#x.history]
  return math.max(x.added, x.not_before, x.admitted or 0, last and last.ended or 0)
end

local COUNTED = {
  'added', 'waiting', 'scheduled', 'blocked', 'ready', 'leased', 'done', 'failed', 'cancelled', 'purged', 'ever_added',
  'ever_leased', 'ever_done', 'ever_failed', 'ever_cancelled',
}

local function named(counts)
  local all = {}
  for n, counted in ipairs(counts) do
    all[n] = { counted[1], COUNTED[counted[2] + 1], counted[3] }
  end
  return all
end

function read.overview()
  local counts, kinds = rows.counts(), rows.kinds()
  local waiting, served = {}, {}
  for _, counted in ipairs(counts) do
    if counted[2] < State.Done and counted[3] > 0 and waiting[#waiting] ~= counted[1] then
      waiting[#waiting + 1] = counted[1]
    end
  end
  for _, row in ipairs(kinds) do
    served[row.kind] = row.served_until > work.lease_clock
  end
  local unserved, workers = {}, 0
  for _, kind in ipairs(waiting) do
    if not served[kind] then
      unserved[#unserved + 1] = kind
    end
  end
  local lost, paused_keys, oldest = 0, {}, nil
  for _, presence in ipairs(rows.presences()) do
    if presence.ends > work.lease_clock then
      workers = workers + 1
    elseif not presence.cleared then
      lost = lost + #rows.held_by(presence.worker, limits.MAX_HELD)
    end
  end
  for n, row in ipairs(rows.paused_keys(limits.MAX_LISTED)) do
    paused_keys[n] = { key = row.key, tasks = rows.blocked(row.key, limits.MAX_COUNTED), since = row.paused_at }
  end
  local line, next = rows.ready(waiting, nil, OVERVIEW_READY), rows.next_scheduled()
  for _, x in ipairs(line) do
    oldest = math.min(oldest or limits.LARGEST, ready_since(x))
  end
  local miscounted = #line < OVERVIEW_READY and number_of(counts, {}, { State.Ready }) ~= #line
    or (next == nil) ~= (number_of(counts, {}, { State.Scheduled }) == 0)
  return {
    at = work.now, settings = work.queue.settings, paused = work.queue.paused,
    paused_at = work.queue.paused_at, paused_keys = paused_keys, workers = workers, lost = lost, unserved = unserved,
    oldest = oldest, next = next, miscounted = miscounted, counts = named(counts), kinds = kinds,
  }
end
