-- Selections by a selector (select.rs). A cursor has the name of its order, a time and an id.
-- luacheck: std lua51, read globals tables State limits number of_number tasks_of is_below id_before
-- luacheck: globals rows work, max line length 120

local function is_one(of, it)
  if #of == 0 then
    return true
  end
  for _, one in ipairs(of) do
    if one == it then
      return true
    end
  end
  return false
end

local function has_all(tags, wanted)
  for _, tag in ipairs(wanted) do
    if #tags == 0 or not is_one(tags, tag) then
      return false
    end
  end
  return true
end

-- An id with hyphens.
local function text_of(id)
  local text = string.gsub(id, '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end)
  return string.sub(text, 1, 8) .. '-' .. string.sub(text, 9, 12) .. '-' .. string.sub(text, 13, 16) .. '-'
    .. string.sub(text, 17, 20) .. '-' .. string.sub(text, 21)
end

local function matches(selector, x)
  local suffix = selector.id_suffix
  return is_one(selector.ids, x.id) and is_one(selector.kinds, x.kind)
    and (#selector.states > 0 and is_one(selector.states, x.state) or #selector.states == 0 and x.state ~= State.Purged)
    and (not selector.key or x.key == selector.key)
    and (not selector.unique or x.unique and x.unique[1] == selector.unique)
    and has_all(x.tags or {}, selector.tags)
    and (not selector.schedule or x.schedule and x.schedule[1] == selector.schedule)
    and (not selector.worker or x.worker == selector.worker)
    and (not selector.error or x.error and string.find(x.error, selector.error, 1, true))
    and (not selector.added_from or x.added >= selector.added_from)
    and (not selector.added_before or x.added < selector.added_before)
    and (not selector.ended_from or x.ended and x.ended >= selector.ended_from)
    and (not selector.ended_before or x.ended and x.ended < selector.ended_before)
    and (not suffix or string.sub(text_of(x.id), -#suffix) == suffix)
end

local function position_of(order, x)
  local at = order == 'ended' and x.ended or order ~= 'ended' and x.added
  return at and number(at) .. x.id
end

local function cursor_at(order, position)
  return { order = order, at = of_number(position, 1), id = string.sub(position, 8) }
end

local function start_of(order)
  return order == 'oldest' and number(0) .. string.rep('\0', 16) or number(limits.LARGEST) .. string.rep('\255', 16)
end

local ENDED = { 'x', 'e\6', 'e\7', 'e\8', 'e\9' }

local function positions_after(order, after, most)
  if order == 'oldest' then
    return tables.find_entries('I', after .. '\0', nil, most)
  elseif order == 'newest' then
    return tables.find_entries('I', nil, after, most, true)
  end
  local all = {}
  for _, group in ipairs(ENDED) do
    for _, entry in ipairs(tables.find_entries(group, nil, after, most, true)) do
      all[#all + 1] = string.sub(entry, -23)
    end
  end
  table.sort(all, function(a, b)
    return is_below(b, a)
  end)
  for n = #all, most + 1, -1 do
    all[n] = nil
  end
  return all
end

-- Returns also whether the command must stop there. `searched.size` sums the payloads read.
local function keep(found, tasks, selector, most, searched)
  for _, x in ipairs(tasks) do
    if matches(selector, x) then
      local payload = selector.payload and rows.payload(x.id)
      searched.size = searched.size + #(payload or '')
      if not selector.payload or payload and string.find(payload, selector.payload, 1, true) then
        found[#found + 1] = x
      end
      if #found == most or searched.size > limits.MAX_SEARCHED then
        return x
      end
    end
  end
end

-- The tasks of the selector's ids, in order.
local function named(selector, order, after)
  local ids, seen, found = {}, {}, {}
  for _, id in ipairs(selector.ids) do
    if not seen[id] then
      seen[id] = true
      ids[#ids + 1] = id
    end
  end
  for _, x in ipairs(tasks_of(ids)) do
    local at = position_of(order, x)
    if at and at ~= after and is_below(after, at) == (order == 'oldest') then
      found[#found + 1] = x
    end
  end
  table.sort(found, function(a, b)
    if order ~= 'oldest' then
      a, b = b, a
    end
    return is_below(position_of(order, a), position_of(order, b))
  end)
  return found
end

-- Returns also the last position examined, unless no task follows.
local function scan(selector, order, after, most)
  local found, searched, left = {}, { size = 0 }, limits.MAX_SCANNED
  if #selector.ids > 0 then
    local last = keep(found, named(selector, order, after), selector, most, searched)
    return found, last and position_of(order, last)
  end
  while left > 0 do
    local page = math.min(math.max(most, 100), left)
    local positions = positions_after(order, after, page)
    local last = keep(found, tasks_of(positions), selector, most, searched)
    if last then
      return found, position_of(order, last)
    elseif #positions < page then
      return found
    end
    after, left = positions[page], left - page
  end
  return found, after
end

local function first_position(selector, order)
  if order == 'oldest' then
    local from = selector.added_from
    return from and from > 0 and number(from - 1) .. string.rep('\255', 16)
  end
  local before = order == 'newest' and selector.added_before or order == 'ended' and selector.ended_before
  return before and number(before) .. string.rep('\0', 16)
end

local function may_go_on(selector, order, at)
  if order == 'oldest' then
    return not selector.added_before or at < selector.added_before
  end
  local from = order == 'newest' and selector.added_from or order == 'ended' and selector.ended_from
  return not from or at >= from
end

-- Returns also the next command's cursor. No cursor: from the start of the order of adding.
function work.select(selector, cursor, most)
  local order = cursor and cursor.order or 'oldest'
  local after = cursor and number(cursor.at) .. cursor.id or start_of(order)
  local first = first_position(selector, order)
  if first and is_below(after, first) == (order == 'oldest') then
    after = first
  end
  local found, last = scan(selector, order, after, most)
  local next = last and cursor_at(order, last)
  return found, next and may_go_on(selector, order, next.at) and next or nil
end

function work.is_start(cursor)
  return number(cursor.at) .. cursor.id == start_of(cursor.order)
end

function work.cursor_of(order, x)
  return cursor_at(order, position_of(order, x))
end

-- In the order of adding: the next command begins with `x`.
function work.cursor_before(x)
  local before = id_before(number(x.added) .. x.id)
  return before and cursor_at('oldest', before)
end
