-- Indexes that have an entry of most tasks: those that are ready, those that are leased, those that have ended, and the
-- ids of all. A sorted set with each of them would cost more than the tasks themselves. So their entries, which are
-- all as long, lie in pages: a page is a field of ROWS, and has the entries from the one that it is named by on, up to
-- the name of the next one; INDEX has the names. The first page of a group has also what is lower than all names.
-- luacheck: std lua51, read globals redis is_below sort place behind ROWS INDEX WIDTHS, globals tables, max line length 120
-- luacheck: ignore 211

-- A page is at most as long: it is written whole.
local PAGE = 506

-- The last page of a group whose name is not behind this text.
local function page_before(group, text)
  return redis.call('ZREVRANGEBYLEX', INDEX, '[' .. group .. text, '[' .. group, 'LIMIT', 0, 1)[1]
end

local function load_pages(names)
  local missing, fields = {}, {}
  for _, name in ipairs(names) do
    if not tables.pages[name] then
      missing[#missing + 1], fields[#fields + 1] = name, '#' .. name
    end
  end
  if #missing > 0 then
    for n, text in ipairs(redis.call('HMGET', ROWS, unpack(fields))) do
      tables.pages[missing[n]] = text or ''
    end
  end
end

local function page(name)
  local text = tables.pages[name]
  if not text then
    text = redis.call('HGET', ROWS, '#' .. name) or ''
    tables.pages[name] = text
  end
  return text
end

-- The rests of the entries of a group between two bounds, as they were when the command began: at least so many, if
-- there are.
function tables.read_pages(group, low, high, most)
  local bounds = group .. low .. '/' .. (high or '')
  local read, width = tables.read[bounds], WIDTHS[string.sub(group, 1, 1)]
  if not read then
    local first = low ~= '' and page_before(group, low)
    read = { entries = {}, from = '[' .. (first or group), text = '', at = 1 }
    tables.read[bounds] = read
    tables.names[group] = tables.names[group] or {}
  end
  local entries = read.entries
  while #entries < most do
    if read.at > #read.text then
      -- The next page.
      local names = read.names
      if not names or read.next > #names then
        if read.is_last then
          read.is_all = true
          break
        end
        local want = math.min(math.floor((most - #entries) * width / PAGE) + 1, 1000)
        names = redis.call('ZRANGEBYLEX', INDEX, read.from, '(' .. (high and group .. high or behind(group)), 'LIMIT', 0,
          want)
        tables.is_read[INDEX] = true
        read.names, read.next, read.is_last = names, 1, #names < want
        if #names == 0 then
          read.is_all = true
          break
        end
        read.from = '(' .. names[#names]
        if #names > 1 then
          load_pages(names)
        end
      end
      local name, of_group = names[read.next], tables.names[group]
      of_group[#of_group + 1] = name
      read.text, read.at, read.next = page(name), 1, read.next + 1
    else
      local rest = string.sub(read.text, read.at, read.at + width - 1)
      read.at = read.at + width
      if high and not is_below(rest, high) then
        read.is_all = true
        break
      elseif low == '' or not is_below(rest, low) then
        entries[#entries + 1] = rest
      end
    end
  end
  return read
end

-- Where the first entry is that is not below this one, from `at` on.
local function find(text, rest, at, width)
  if at > #text or is_below(string.sub(text, -width), rest) then
    return #text + 1
  end
  local low, high = 0, (#text + 1 - at) / width
  while low < high do
    local middle = math.floor((low + high) / 2)
    if not is_below(string.sub(text, at + middle * width, at + middle * width + width - 1), rest) then
      high = middle
    elseif middle == 0 then
      -- Most often it is here or next.
      low = 1
    else
      low = middle + 1
    end
  end
  return at + low * width
end

-- A page after these changes of it, of which those in `new` are to be there.
local function changed(text, changes, from, to, new, width)
  local parts, at = {}, 1
  for n = from, to do
    local rest = changes[n]
    -- Often one follows another.
    local found = string.sub(text, at, at + width - 1) == rest and at or find(text, rest, at, width)
    if found > at then
      parts[#parts + 1] = string.sub(text, at, found - 1)
    end
    if new[rest] then
      parts[#parts + 1] = rest
    end
    at = string.sub(text, found, found + width - 1) == rest and found + width or found
  end
  parts[#parts + 1] = string.sub(text, at)
  return table.concat(parts)
end

-- Changes the pages of a group, and collects what is to be written: the fields, and the names.
function tables.change_pages(group, some, rows, no_rows, names, no_names)
  local width, changes, touched = WIDTHS[string.sub(group, 1, 1)], {}, {}
  for rest in pairs(some.new) do
    changes[#changes + 1] = rest
  end
  for rest in pairs(some.gone) do
    changes[#changes + 1] = rest
  end
  local last, read, at = #changes, tables.names[group] or {}, 1
  sort(changes)
  sort(read)
  while at <= last do
    local first, to = changes[at], last
    -- A page that was read has all up to its last entry.
    local name = read[place(read, group .. first .. '\0') - 1]
    local highest = name and string.sub(tables.pages[name], -width)
    if highest and not is_below(highest, first) then
      to = at < last and place(changes, highest .. '\0') - 1 or at
    else
      name = page_before(group, first)
      local following = at < last
        and redis.call('ZRANGEBYLEX', INDEX, '(' .. group .. first, '(' .. behind(group), 'LIMIT', 0, 1)[1]
      to = following and place(changes, string.sub(following, #group + 1)) - 1 or last
    end
    local is_listed = name
    name = name or group .. string.rep('\0', width)
    local text = changed(page(name), changes, at, to, some.new, width)
    tables.pages[name] = text
    touched[name] = { is_listed, string.sub(text, -width) == changes[to] }
    at = to + 1
  end
  for name, how in pairs(touched) do
    local text, is_listed, is_longer = tables.pages[name], how[1], how[2]
    if text == '' then
      no_rows[#no_rows + 1] = '#' .. name
      no_names[#no_names + 1] = is_listed or nil
    else
      -- As what is new is mostly behind all else, pages are left full.
      local size = PAGE - PAGE % width
      if not is_longer then
        size = math.ceil(#text / width / math.ceil(#text / size)) * width
      end
      for from = 1, #text, size do
        if from > 1 then
          name = group .. string.sub(text, from, from + width - 1)
        end
        if from > 1 or not is_listed then
          names[#names + 1] = '0'
          names[#names + 1] = name
        end
        rows[#rows + 1] = '#' .. name
        rows[#rows + 1] = string.sub(text, from, from + size - 1)
      end
    end
  end
end

-- At least so many ids behind this one, if there are.
function tables.ids_after(after, most)
  return tables.look('I', after and after .. '\0', nil, most)
end
