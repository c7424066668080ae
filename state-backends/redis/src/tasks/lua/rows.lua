-- The trait `Rows` on the tables (rows.rs).
-- luacheck: std lua51, globals tables, read globals redis State EdgeState limits copy copy_task is_below
-- luacheck: read globals number of_number is_ended INLINE ROWS
-- luacheck: globals rows, ignore 211 241, max line length 120

local rows = {}

-- Requires that the last 16 bytes of an entry are the id.
local function tasks_of(entries)
  if #entries == 0 then
    return entries
  end
  local ids, found = {}, {}
  for n, entry in ipairs(entries) do
    ids[n] = string.sub(entry, -16)
  end
  tables.load(ids)
  for _, id in ipairs(ids) do
    found[#found + 1] = tables.task(id)
  end
  return found
end

local function task_of(entries)
  return entries[1] and tables.task(string.sub(entries[1], -16))
end

function rows.queue()
  return tables.get('')
end

function rows.put_queue(queue)
  tables.set('', queue)
end

function rows.task(id)
  return tables.task(id)
end

function rows.has_task(id)
  tables.load({ id })
  return tables.tasks[id] or tables.tasks[id] == nil and tables.rows[id]
end

function rows.insert(x, payload)
  tables.set_task(x.id, x)
  tables.set_body(tables.payloads, 'p', x.id, payload)
end

function rows.put(after)
  tables.set_task(after.id, after)
end

function rows.remove(x)
  tables.set_body(tables.payloads, 'p', x.id, nil)
  tables.set_body(tables.results, 'r', x.id, nil)
  tables.set_log(x.id, {})
  tables.set_task(x.id, nil)
end

function rows.payload(id)
  return tables.body(tables.payloads, 'p', id)
end

function rows.put_payload(id, payload)
  tables.set_body(tables.payloads, 'p', id, payload)
end

function rows.result(id)
  return tables.body(tables.results, 'r', id)
end

function rows.put_result(id, result)
  tables.set_body(tables.results, 'r', id, result)
end

function rows.log(id)
  return tables.log(id)
end

function rows.put_log(id, log)
  tables.set_log(id, log)
end

function rows.by_name(name)
  return task_of(tables.find_entries('n' .. name .. '\0', nil, nil, 1))
end

function rows.added(most)
  return tasks_of(tables.find_entries('a', nil, nil, most))
end

function rows.scheduled(till, most)
  return tasks_of(tables.find_entries('s', nil, number(till + 1), most))
end

function rows.next_scheduled()
  local first = tables.find_entries('s', nil, nil, 1)[1]
  return first and of_number(first, 2)
end

-- Bytes of `due`, rank and id.
local ORDER_WIDTH = 34

local function merged(found, some, most)
  local all, at = {}, 1
  for n = 1, math.min(#found + #some, most) do
    local one, other = found[n - at + 1], some[at]
    if not one or other and is_below(string.sub(other, -ORDER_WIDTH), string.sub(one, -ORDER_WIDTH)) then
      all[n], at = other, at + 1
    else
      all[n] = one
    end
  end
  return all
end

-- Ids preceded by priority, `due` and rank.
function rows.ready_entries(kinds, at_least, most)
  local found = {}
  for _, kind in ipairs(kinds) do
    local priorities = tables.priorities(kind)
    -- The highest priorities usually suffice. Lower ones are only read up to the last entry found.
    for n = #priorities, 1, -1 do
      local priority = string.byte(priorities, n)
      if not at_least or priority - 128 >= at_least then
        local from, to, last = n > 1 and string.char(priority) or nil, nil, found[most]
        if last then
          to = string.char(priority) .. string.sub(last, -ORDER_WIDTH)
        elseif n < #priorities then
          to = string.char(priority + 1)
        end
        local some = tables.find_entries('r' .. kind .. '\0', from, to, most)
        if #some > 0 then
          found = merged(found, some, most)
        end
      end
    end
  end
  return found
end

function rows.ready(kinds, at_least, most)
  return tasks_of(rows.ready_entries(kinds, at_least, most))
end

function rows.load(entries)
  local ids = {}
  for n, entry in ipairs(entries) do
    ids[n] = string.sub(entry, -16)
  end
  tables.load(ids)
  return ids
end

function rows.leased()
  local leased = 0
  for _, counted in ipairs(rows.counts()) do
    if counted[2] == State.Leased then
      leased = leased + counted[3]
    end
  end
  return leased
end

function rows.leased_of_key(key)
  return tables.count_entries('L' .. key .. '\0')
end

function rows.held_by(worker, most)
  return tasks_of(tables.find_entries('l' .. worker .. '\0', nil, nil, most))
end

function rows.holds_some(worker)
  return #tables.find_entries('l' .. worker .. '\0', nil, nil, 1) > 0
end

function rows.to_stop(worker, most)
  return tasks_of(tables.find_entries('t' .. worker .. '\0', nil, nil, most))
end

function rows.holders(key)
  return tables.count_entries('h' .. key .. '\0')
end

function rows.has_ordered_holder(key)
  return #tables.find_entries('o' .. key .. '\0', nil, nil, 1) > 0
end

function rows.last_ready_holder(key)
  return task_of(tables.find_entries('R' .. key .. '\0', nil, nil, 1, true))
end

function rows.first_in_line(key)
  return task_of(tables.find_entries('q' .. key .. '\0', nil, nil, 1))
end

function rows.blocked(key, most)
  return math.min(tables.count_entries('k' .. key .. '\0') - rows.holders(key), most)
end

function rows.next_key(after)
  local first = tables.find_entries('k', after and after .. '\1', nil, 1)[1]
  return first and string.sub(first, 2, -18)
end

function rows.unserved(kind, most)
  return tasks_of(tables.find_entries('p' .. kind .. '\0', nil, nil, most))
end

function rows.ready_holders(kind, most)
  return tasks_of(tables.find_entries('H' .. kind .. '\0', nil, nil, most))
end

function rows.overdue(till, most)
  return tasks_of(tables.find_entries('d', nil, number(till + 1), most))
end

function rows.next_deadline()
  local first = tables.find_entries('d', nil, nil, 1)[1]
  return first and of_number(first, 2)
end

function rows.unnotified(most)
  return tasks_of(tables.find_entries('u', nil, nil, most))
end

function rows.ended(state, before, most)
  return tasks_of(tables.find_entries('e' .. string.char(state), nil, number(before), most))
end

function rows.insert_edge(edge)
  tables.set_edge(edge)
end

function rows.remove_edge(edge)
  tables.set_edge(edge, true)
end

function rows.put_edge(edge)
  tables.set_edge(edge)
end

function rows.edge(up, down)
  tables.load_edges({ down .. up })
  return tables.edges[down .. up] or nil
end

local function edges_named(names, most)
  tables.load_edges(names)
  local found = {}
  for n = 1, math.min(#names, most) do
    found[n] = tables.edges[names[n]] or nil
  end
  return found
end

-- In the order of the ids that end the entries.
local function edges_in(group, ranges, most, name_of)
  local ends = {}
  for _, range in ipairs(ranges) do
    for _, entry in ipairs(tables.find_entries(group, range[1], range[2], most)) do
      ends[#ends + 1] = string.sub(entry, -16)
    end
  end
  if #ranges > 1 then
    table.sort(ends, is_below)
  end
  for n, id in ipairs(ends) do
    ends[n] = name_of(id)
  end
  return edges_named(ends, most)
end

function rows.edges_from(up, after, most)
  local behind = after and after .. '\0' or ''
  local ranges = { { '\0' .. behind, '\1' }, { '\1' .. behind, '\2' }, { '\2' .. behind, '\3' } }
  return edges_in('F' .. up .. '\0', ranges, most, function(down)
    return down .. up
  end)
end

function rows.unnotified_from(up, generation, most)
  local group = 'F' .. up .. '\0'
  local function name_of(down)
    return down .. up
  end
  if generation == 0 then
    return edges_in(group, { { '\0', '\1' } }, most, name_of)
  end
  -- Edges held since an earlier generation, among all held ones.
  local held_edges, after = edges_in(group, { { '\0', '\1' } }, most, name_of), '\1'
  local page = math.max(most, 100)
  while true do
    local held = tables.find_entries(group, after, '\2', page)
    local names = {}
    for n, entry in ipairs(held) do
      names[n] = name_of(string.sub(entry, -16))
    end
    local older = 0
    for _, edge in ipairs(edges_named(names, page)) do
      if (edge.generation or 0) < generation then
        held_edges[#held_edges + 1] = edge
        older = older + 1
      end
    end
    if #held < page or older >= most then
      break
    end
    after = '\1' .. string.sub(held[#held], -16) .. '\0'
  end
  table.sort(held_edges, function(a, b)
    return is_below(a.down, b.down)
  end)
  for n = #held_edges, most + 1, -1 do
    held_edges[n] = nil
  end
  return held_edges
end

function rows.edges_to(down, state, after, most)
  local first, last, ranges = state or EdgeState.New, state or EdgeState.Cut, {}
  for of_state = first, last do
    local letter = string.char(of_state)
    ranges[#ranges + 1] = { after and letter .. after .. '\0' or letter, string.char(of_state + 1) }
  end
  return edges_in('D' .. down .. '\0', ranges, most, function(up)
    return down .. up
  end)
end

function rows.has_pending(down)
  return #tables.find_entries('D' .. down .. '\0', nil, string.char(EdgeState.Held + 1), 1) > 0
end
