-- The forms of a stored task. Most tasks are plain: they have a kind, a small payload, the fields
-- of every task, and defaults for the rest. The row of a plain task is a text of these parts, so
-- that a step leases and completes it without unpacking (plain.lua):
--
-- | READY  | '\1'                                      | static |
-- | LEASED | '\2'                               | run  | static |
-- | DONE   | '\3' ended, ended_tick, the result | run  | static |
--
-- `run` is the worker, the incarnation, the attempt, the time of leasing, and 1 if that was ahead of
-- a free permit, else 0; `static` the time of adding, the position, the kind and the payload. A
-- missing result is empty. Any other row is a table packed by cmsgpack without defaults; its first
-- byte is above all of these.
-- luacheck: std lua51, read globals struct cmsgpack State, max line length 120, ignore 211

local READY, LEASED, DONE = 1, 2, 3
-- Longer payloads and results are stored apart, so that reads of tasks need not load them.
local INLINE = 512
-- Position of the kind's size, which precedes the kind.
local READY_KIND, LEASED_KIND = 13, 48

-- A plain task's `due` is its `added`.
local PLAIN = {
  [State.Ready] = { id = true, kind = true, state = true, added = true, position = true, due = true },
  [State.Leased] = {
    id = true, kind = true, state = true, added = true, position = true, due = true, worker = true, token = true,
    leased = true, prefetched = true,
  },
  [State.Done] = {
    id = true, kind = true, state = true, added = true, position = true, due = true, worker = true, token = true,
    leased = true, prefetched = true, ended = true, ended_lease_clock = true, notified = true,
  },
}

local function static(added, position, kind, payload)
  return struct.pack('>I7I4B', added, position or 0, #kind) .. kind .. payload
end

local function plain_row(x, payload, result)
  local known, state = PLAIN[x.state], x.state
  if not known or x.due ~= x.added or type(payload) ~= 'string' or #payload > INLINE then
    return nil
  elseif result and (state ~= State.Done or result == true or #result > INLINE) then
    return nil
  end
  for name in pairs(x) do
    if not known[name] then
      return nil
    end
  end
  if state == State.Ready then
    return '\1' .. static(x.added, x.position, x.kind, payload)
  end
  local row = x.worker .. struct.pack('>I7I4I7B', x.token[1], x.token[2], x.leased, x.prefetched and 1 or 0)
    .. static(x.added, x.position, x.kind, payload)
  if state == State.Leased then
    return '\2' .. row
  end
  local stored = result or ''
  return x.notified and struct.pack('>BI7I7I2', DONE, x.ended, x.ended_lease_clock, #stored) .. stored .. row
end

-- Returns also payload and result; `false`: none.
local function task_of_row(id, row)
  local form = string.byte(row)
  if form > DONE then
    local x = cmsgpack.unpack(row)
    local payload, result = x.payload or false, x.result or false
    x.id, x.payload, x.result = id, nil, nil
    return x, payload, result
  elseif form == READY then
    local added, position, size, at = struct.unpack('>I7I4B', row, 2)
    local x = {
      id = id, kind = string.sub(row, at, at + size - 1), state = State.Ready, added = added, due = added,
      position = position > 0 and position or nil,
    }
    return x, string.sub(row, at + size), false
  end
  local at, state, ended, tick, notified, result = 2, State.Leased, nil, nil, nil, ''
  if form == DONE then
    local size
    ended, tick, size, at = struct.unpack('>I7I7I2', row, at)
    result, at, state, notified = string.sub(row, at, at + size - 1), at + size, State.Done, true
  end
  local worker, incarnation, attempt, leased, prefetched, added, position, size, after =
    struct.unpack('>c16I7I4I7BI7I4B', row, at)
  local x = {
    id = id, kind = string.sub(row, after, after + size - 1), state = state, added = added, due = added,
    worker = worker, token = { incarnation, attempt }, leased = leased, prefetched = prefetched == 1 or nil,
    ended = ended, ended_lease_clock = tick, notified = notified, position = position > 0 and position or nil,
  }
  return x, string.sub(row, after + size), result ~= '' and result
end

local function plain_size(row)
  return #row - READY_KIND - string.byte(row, READY_KIND)
end
