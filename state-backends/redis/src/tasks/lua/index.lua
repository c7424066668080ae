-- Lookups in the indexes (entry.lua). Pending changes are visible at once, and written at the end
-- of the command.
-- luacheck: std lua51, read globals redis INDEX WIDTHS UNCOUNTED is_below sort place behind plain_entry entries_of
-- luacheck: read globals entries_of_edge entries_of_presence State number
-- luacheck: globals tables, max line length 120, ignore 211

-- The number when the command began; a positive number if the letter is not counted.
local function stored_of(letter)
  if UNCOUNTED[letter] then
    return 1
  end
  local entries = tables.get('entries')
  return entries and entries[letter] or 0
end

-- A lookup stays within one group, the prefix of its entries.

local function pending_of(group)
  local some = { new = {}, new_count = 0, gone = {}, gone_count = 0 }
  tables.pending[group] = some
  return some
end

function tables.add_entry(group, entry)
  local some = tables.pending[group] or pending_of(group)
  if some.gone[entry] then
    some.gone[entry], some.gone_count = nil, some.gone_count - 1
  elseif not some.new[entry] then
    some.new[entry], some.new_count = true, some.new_count + 1
    if some.sorted then
      table.insert(some.sorted, place(some.sorted, entry), entry)
    end
  end
end

function tables.remove_entry(group, entry)
  local some = tables.pending[group] or pending_of(group)
  if some.new[entry] then
    some.new[entry], some.new_count = nil, some.new_count - 1
    if some.sorted then
      table.remove(some.sorted, place(some.sorted, entry))
    end
  elseif not some.gone[entry] then
    some.gone[entry], some.gone_count = true, some.gone_count + 1
  end
end

-- Groups in pages store only the rest.
local function in_group(group, entry)
  return WIDTHS[string.sub(group, 1, 1)] and string.sub(entry, #group + 1) or entry
end

local function replace_entries(old, new)
  for entry, group in pairs(old) do
    if not new[entry] then
      tables.remove_entry(group, in_group(group, entry))
    end
  end
  for entry, group in pairs(new) do
    if not old[entry] then
      tables.add_entry(group, in_group(group, entry))
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

-- A heartbeat moves no entry: a presence stays listed by an earlier end until a lookup of ended
-- leases finds it.
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

-- All that were ever ready, in order, as in the entries.
function tables.priorities(kind)
  tables.index_tasks()
  return tables.get('levels:' .. kind) or '\128'
end

local function note_priority(kind, priority)
  local priorities, encoded = tables.get('levels:' .. kind) or '\128', string.char(priority + 128)
  if not string.find(priorities, encoded, 1, true) then
    local all = { encoded }
    for n = 1, #priorities do
      all[n + 1] = string.sub(priorities, n, n)
    end
    sort(all)
    tables.set('levels:' .. kind, table.concat(all))
  end
end

local IMMEDIATE = { F = true, D = true }

function tables.index_tasks()
  if not next(tables.unindexed) then
    return
  end
  for id in pairs(tables.unindexed) do
    local before, after = tables.indexed[id], tables.tasks[id]
    if not before or not after or before.added ~= after.added then
      if before then
        tables.remove_entry('I', number(before.added) .. id)
      end
      if after then
        tables.add_entry('I', number(after.added) .. id)
      end
    end
    -- Most tasks have one entry.
    local is_plain, group, rest, was_plain, old_group, old_rest = true, nil, nil, true, nil, nil
    if after then
      is_plain, group, rest = plain_entry(after)
      if after.state == State.Ready then
        note_priority(after.kind, after.priority)
      end
    end
    if before then
      was_plain, old_group, old_rest = plain_entry(before)
    end
    if is_plain and was_plain then
      if old_group ~= group or old_rest ~= rest then
        if old_group then
          tables.remove_entry(old_group, old_rest)
        end
        if group then
          tables.add_entry(group, rest)
        end
      end
    else
      replace_entries(before and entries_of(before) or {}, after and entries_of(after) or {})
    end
    tables.indexed[id] = after
  end
  tables.unindexed = {}
end

-- At least `most` entries, if they exist, as stored when the command began.
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

-- Up to `most` entries from `from` to before `to`, both without the group. A group in pages returns
-- the rests.
function tables.find_entries(group, from, to, most, backwards)
  local letter = string.sub(group, 1, 1)
  if not IMMEDIATE[letter] and next(tables.unindexed) then
    tables.index_tasks()
  end
  local some = tables.pending[group]
  if not some and stored_of(letter) == 0 then
    return {}
  end
  local low, high = from, to
  if not WIDTHS[letter] then
    low, high = group .. (from or ''), to and group .. to or behind(group)
  end
  local function stored_between(at_least)
    if WIDTHS[letter] then
      return tables.read_pages(group, low, high, at_least, backwards)
    end
    return read_index('[' .. low, '(' .. high, backwards, at_least)
  end
  if not some or some.new_count + some.gone_count == 0 then
    local entries = stored_between(most).entries
    if #entries <= most then
      return entries
    end
    local first = {}
    for n = 1, most do
      first[n] = entries[n]
    end
    return first
  end
  if some.new_count > 0 and not some.sorted then
    some.sorted = {}
    for entry in pairs(some.new) do
      some.sorted[#some.sorted + 1] = entry
    end
    sort(some.sorted)
  end
  local new = some.sorted or {}
  local at, last, step = low and place(new, low) or 1, high and place(new, high) - 1 or #new, 1
  if backwards then
    at, last, step = last, at, -1
  end
  local found, read, have = {}, nil, 0
  while #found < most do
    local stored
    repeat
      have = have + 1
      if not read or have > #read.entries and not read.is_all then
        read = stored_between(have + most - 1 + math.min(some.gone_count, 100))
      end
      stored = read.entries[have]
    until not stored or not some.gone[stored]
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

function tables.count_entries(group)
  tables.index_tasks()
  local some, stored = tables.pending[group], 0
  if stored_of(string.sub(group, 1, 1)) > 0 then
    stored = redis.call('ZLEXCOUNT', INDEX, '[' .. group, '(' .. behind(group))
  end
  return stored + (some and some.new_count - some.gone_count or 0)
end

