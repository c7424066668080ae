-- The ids of all tasks in their order, for pages of selected tasks. A sorted set with each of them would cost as much
-- as an index of the tasks that are ready, so a row has the ids of several: from the one that it is named by on, up to
-- the name of the next row.
-- luacheck: std lua51, read globals is_below, globals tables, max line length 120

-- So many ids are in one row: one add writes it whole.
local MOST_IDS = 32
-- The first row, which has what is lower than all others.
local FIRST = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

-- The name of the row that has this id, or is to have it.
local function page_of(id)
  local page = tables.page
  if page and not is_below(id, page.from) and (not page.to or is_below(id, page.to)) then
    return page.from
  end
  local entry = tables.look('I', nil, id .. '\0', 1, true)[1]
  local following = tables.look('I', id .. '\0', nil, 1)[1]
  page = { from = entry and string.sub(entry, 2) or FIRST, to = following and string.sub(following, 2) }
  tables.page = page
  return page.from
end

-- How many bytes are before this id in a row.
local function before(ids, id)
  if ids == '' or is_below(string.sub(ids, -16), id) then
    return #ids
  end
  local low, high = 0, #ids / 16
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_below(string.sub(ids, middle * 16 + 1, middle * 16 + 16), id) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low * 16
end

function tables.add_id(id)
  local name = page_of(id)
  local ids = tables.get('ids:' .. name)
  if not ids then
    tables.add_entry('I', 'I' .. name)
    ids = ''
  end
  local at = before(ids, id)
  local is_last = at == #ids
  ids = string.sub(ids, 1, at) .. id .. string.sub(ids, at + 1)
  if #ids > 16 * MOST_IDS then
    -- As ids rise, rows are left full.
    local kept = is_last and at or 8 * MOST_IDS
    local rest = string.sub(ids, kept + 1)
    local next_name = string.sub(rest, 1, 16)
    tables.set('ids:' .. next_name, rest)
    tables.add_entry('I', 'I' .. next_name)
    tables.page = nil
    ids = string.sub(ids, 1, kept)
  end
  tables.set('ids:' .. name, ids)
end

function tables.remove_id(id)
  local name = page_of(id)
  local ids = tables.get('ids:' .. name) or ''
  local at = before(ids, id)
  if string.sub(ids, at + 1, at + 16) ~= id then
    return
  end
  ids = string.sub(ids, 1, at) .. string.sub(ids, at + 17)
  if ids == '' then
    tables.set('ids:' .. name, nil)
    tables.remove_entry('I', 'I' .. name)
    tables.page = nil
  else
    tables.set('ids:' .. name, ids)
  end
end

-- At least so many ids behind this one, if there are.
function tables.ids_after(after, most)
  tables.index_tasks()
  local found, from = {}, after and page_of(after) or FIRST
  while #found < most do
    local pages, fields = tables.look('I', from, nil, MOST_IDS), {}
    for n, page in ipairs(pages) do
      fields[n] = 'ids:' .. string.sub(page, 2)
    end
    tables.get_all(fields)
    for _, field in ipairs(fields) do
      local ids = tables.get(field)
      for at = 1, #ids, 16 do
        local id = string.sub(ids, at, at + 15)
        if not after or is_below(after, id) then
          found[#found + 1] = id
        end
      end
    end
    if #pages < MOST_IDS then
      break
    end
    from = string.sub(pages[#pages], 2) .. '\0'
  end
  return found
end
