-- The index entries of a task, an edge and a presence (entry.rs of the memory). An entry is a
-- letter, the columns of its index, and an id. A rank is the time of adding and the position. The
-- returned tables map entries to their groups.
--
-- | group             | then                | content |
-- |-------------------|---------------------|------|
-- | I                 | added id            | task |
-- | n name 0          | id                  | holder of a unique name |
-- | a                 | due rank id         | added |
-- | s                 | not_before rank id  | scheduled |
-- | r kind 0          | priority due rank id | ready |
-- | l worker 0        | id                  | leased |
-- | t worker 0        | id                  | leased and to be stopped |
-- | L key 0           | id                  | leased, of a key |
-- | h key 0, o key 0  | id                  | holds a key; holds it and is ordered |
-- | R key 0           | line rank id        | holds a key and is ready |
-- | H kind 0          | id                  | holds a key and is ready, by kind |
-- | q key 0           | line rank id        | waits for a key |
-- | k                 | key 0 id            | holds a key or waits for it |
-- | p kind 0          | id                  | unserved |
-- | d                 | deadline id         | not ended, with a deadline |
-- | u                 | id                  | ended, notification pending |
-- | e state           | ended id            | ended and notified |
-- | x                 | ended id            | ended, and not notified or retained |
-- | D down 0          | state up            | edge to a task |
-- | F up 0            | class down          | edge from a task: not notified, held, or done |
-- | W                 | lease worker        | worker |
-- | E cleared         | listed worker       | worker by the end of its lease, or an earlier end |
-- | B                 | listed worker       | busy worker, likewise |
-- | K, S, C           | name                | kinds, schedules, counted kinds |
-- | U, P              | key                 | keys that need rebalancing, paused keys |
-- luacheck: std lua51, read globals struct State EdgeState is_ended, max line length 120, ignore 211

-- 7 bytes that sort as the numbers do. `due` may be negative.
local function number(n)
  return struct.pack('>BI6', math.floor(n / 2^48) + 128, n % 2^48)
end

local function of_number(text, at)
  local high, low = struct.unpack('>BI6', text, at)
  return (high - 128) * 2^48 + low
end

local function rank(added, position)
  return struct.pack('>I7I4', added, position or 0)
end

-- Letters whose groups are in pages (pages.lua): the length of their entries after the group.
local WIDTHS = { r = 35, l = 16, e = 23, I = 23 }
-- These letters always have entries, so their entries are not counted.
local UNCOUNTED = { r = true, l = true, e = true, I = true, E = true, W = true }

local function line_of(x)
  return x.ordered and x.added or x.due
end

-- Group and rest of a task's only entry. First value false: it may have others.
local function plain_entry(x)
  if x.key or x.holds_name or x.deadline or x.stop then
    return false
  end
  local state = x.state
  if state == State.Ready then
    return true, 'r' .. x.kind .. '\0', struct.pack('>BBI6I7I4', x.priority + 128, math.floor(x.due / 2^48) + 128,
      x.due % 2^48, x.added, x.position or 0) .. x.id
  elseif state == State.Leased then
    return true, 'l' .. x.worker .. '\0', x.id
  elseif state >= State.Done and x.notified then
    if x.retained then
      return false
    end
    return true, 'e' .. string.char(state), number(x.ended) .. x.id
  end
  return false
end

local function entries_of(x)
  local id, state, kind, key, entries = x.id, x.state, x.kind, x.key, {}
  local function entry(group, rest)
    entries[group .. rest] = group
  end
  local function ranked(at)
    return number(at) .. rank(x.added, x.position) .. id
  end
  if x.holds_name then
    entry('n' .. x.unique[1] .. '\0', id)
  end
  if state == State.Ready then
    entry('r' .. kind .. '\0', string.char(x.priority + 128) .. ranked(x.due))
  elseif state == State.Leased then
    entry('l' .. x.worker .. '\0', id)
    if x.stop then
      entry('t' .. x.worker .. '\0', id)
    end
  elseif state == State.Added then
    entry('a', ranked(x.due))
  elseif state == State.Scheduled then
    entry('s', ranked(x.not_before))
  end
  if key then
    key = key .. '\0'
    if x.holds_key then
      entry('h' .. key, id)
      if x.ordered then
        entry('o' .. key, id)
      end
      if state == State.Ready then
        entry('R' .. key, ranked(line_of(x)))
        entry('H' .. kind .. '\0', id)
      end
    end
    if state == State.Leased then
      entry('L' .. key, id)
    end
    if state == State.Blocked and not x.unserved then
      entry('q' .. key, ranked(line_of(x)))
    end
    if x.holds_key or state == State.Blocked then
      entry('k', key .. id)
    end
    if x.unserved then
      entry('p' .. kind .. '\0', id)
    end
  end
  if is_ended(state) then
    if not x.notified then
      entry('u', id)
    end
    entry(x.notified and not x.retained and 'e' .. string.char(state) or 'x', number(x.ended) .. id)
  elseif x.deadline and not x.stop then
    entry('d', number(x.deadline) .. id)
  end
  return entries
end

local function class_of(state)
  if state == EdgeState.Held then
    return '\1'
  end
  return state < EdgeState.Held and '\0' or '\2'
end

local function entries_of_edge(edge)
  local down, up = 'D' .. edge.down .. '\0', 'F' .. edge.up .. '\0'
  return {
    [down .. string.char(edge.state) .. edge.up] = down,
    [up .. class_of(edge.state) .. edge.down] = up,
  }
end

local function entries_of_presence(worker, presence)
  local by_end = presence.cleared and 'E\1' or 'E\0'
  local ends = number(presence.listed)
  local entries = { ['W' .. number(presence.lease) .. worker] = 'W', [by_end .. ends .. worker] = by_end }
  if presence.busy then
    entries['B' .. ends .. worker] = 'B'
  end
  return entries
end
