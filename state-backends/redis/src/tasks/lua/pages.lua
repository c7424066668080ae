-- Indexes that list most tasks: ready, leased, ended and all ids. A member of a sorted set for each
-- would cost more than the task. Entries of equal length are stored in pages: fields of ROWS with
-- the entries from their name up to the next page's name. INDEX has the names. A group's first page
-- also has the entries below all names.
-- luacheck: std lua51, read globals redis is_below sort place behind ROWS INDEX WIDTHS, globals tables
-- luacheck: max line length 120

-- A page is written as a whole.
local MAX_PAGE_BYTES = 250

local function page_before(group, text)
  return redis.call('ZREVRANGEBYLEX', INDEX, '[' .. group .. text, '[' .. group, 'LIMIT', '0', '1')[1]
end

local function page_after(group, text)
  return redis.call('ZRANGEBYLEX', INDEX, '(' .. group .. text, '(' .. behind(group), 'LIMIT', '0', '1')[1]
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

-- The position of the first entry, from `at` on, that is not below `rest`.
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
      low = 1
    else
      low = middle + 1
    end
  end
  return at + low * width
end

-- Follows the direction of the read. False: there is none.
local function next_page(read, group, most, width)
  if not read.names or read.next > #read.names then
    if read.is_last then
      return false
    end
    local want = math.min(math.floor(most * width / MAX_PAGE_BYTES) + 1, 1000)
    -- The server parses texts faster than numbers.
    local command = read.backwards and 'ZREVRANGEBYLEX' or 'ZRANGEBYLEX'
    local names = redis.call(command, INDEX, read.from, read.to, 'LIMIT', '0', want == 1 and '1' or want)
    tables.is_read[INDEX] = true
    read.names, read.next, read.is_last = names, 1, #names < want
    if #names == 0 then
      return false
    end
    read.from = '(' .. names[#names]
    if #names > 1 then
      load_pages(names)
    end
  end
  local name, of_group = read.names[read.next], tables.names[group]
  of_group[#of_group + 1] = name
  read.text, read.next = page(name), read.next + 1
  return true
end

local function new_read(group, low, high, backwards)
  tables.names[group] = tables.names[group] or {}
  local read = { entries = {}, text = '', at = backwards and 0 or 1, backwards = backwards }
  local behind_all = '(' .. (high and group .. high or behind(group))
  if backwards then
    read.from, read.to = behind_all, '[' .. group
  else
    read.from, read.to = '[' .. (low and page_before(group, low) or group), behind_all
  end
  return read
end

-- At least `most` entries without the group, if they exist, as stored when the command began.
function tables.read_pages(group, low, high, most, backwards)
  local bounds = group .. (low or '') .. '/' .. (high or '') .. (backwards and '-' or '')
  local read, width = tables.read[bounds], WIDTHS[string.sub(group, 1, 1)]
  if not read then
    read = new_read(group, low, high, backwards)
    tables.read[bounds] = read
  end
  local entries = read.entries
  while #entries < most and not read.is_all do
    if read.at < 1 or read.at > #read.text then
      if not next_page(read, group, most - #entries, width) then
        read.is_all = true
      elseif backwards then
        read.at = (high and find(read.text, high, 1, width) or #read.text + 1) - width
      else
        read.at = low and find(read.text, low, 1, width) or 1
      end
    else
      local rest = string.sub(read.text, read.at, read.at + width - 1)
      read.at = read.at + (backwards and -width or width)
      if backwards and low and is_below(rest, low) or not backwards and high and not is_below(rest, high) then
        read.is_all = true
      else
        entries[#entries + 1] = rest
      end
    end
  end
  return read
end

-- Adds `some.new`, and removes `some.gone`.
local function changed(text, changes, from, to, some, width)
  local new, first_new = some.new, from
  while first_new <= to and not new[changes[first_new]] do
    first_new = first_new + 1
  end
  local behind_new = first_new
  while behind_new <= to and new[changes[behind_new]] do
    behind_new = behind_new + 1
  end
  if behind_new > to then
    -- Usually the first entries are removed, and others are appended.
    local gone = table.concat(changes, '', from, first_new - 1)
    local stays = string.sub(text, #gone + 1)
    if string.sub(text, 1, #gone) == gone
      and (first_new > to or stays == '' or is_below(string.sub(stays, -width), changes[first_new]))
    then
      return stays .. table.concat(changes, '', first_new, to)
    end
  end
  local parts, count, at = {}, 0, 1
  for n = from, to do
    local rest = changes[n]
    local is_there, found = string.sub(text, at, at + width - 1) == rest, at
    if not is_there then
      found = find(text, rest, at, width)
      if found > at then
        count = count + 1
        parts[count] = string.sub(text, at, found - 1)
      end
      is_there = string.sub(text, found, found + width - 1) == rest
    end
    if new[rest] then
      count = count + 1
      parts[count] = rest
    end
    at = is_there and found + width or found
  end
  if at <= #text then
    count = count + 1
    parts[count] = string.sub(text, at)
  end
  return table.concat(parts)
end

-- Collects the writes: fields and names.
function tables.change_pages(group, some, rows, no_rows, names, no_names)
  local width, changes = WIDTHS[string.sub(group, 1, 1)], {}
  for rest in pairs(some.new) do
    changes[#changes + 1] = rest
  end
  for rest in pairs(some.gone) do
    changes[#changes + 1] = rest
  end
  local count, read, at = #changes, tables.names[group], 1
  if count > 1 then
    sort(changes)
  end
  if read then
    sort(read)
  end
  while at <= count do
    local first, to = changes[at], count
    -- A page that was read is complete up to its last entry.
    local name = read and read[place(read, group .. first .. '\0') - 1]
    local highest = name and string.sub(tables.pages[name], -width)
    if not highest or is_below(highest, first) then
      name, highest = page_before(group, first), nil
    end
    if at < count and not (highest and not is_below(highest, changes[count])) then
      local following = page_after(group, first)
      to = following and place(changes, string.sub(following, #group + 1)) - 1 or count
    end
    local is_listed = name
    name = name or group .. string.rep('\0', width)
    local text = changed(page(name), changes, at, to, some, width)
    if text == '' then
      no_rows[#no_rows + 1] = '#' .. name
      no_names[#no_names + 1] = is_listed or nil
    else
      if not is_listed then
        names[#names + 1] = '0'
        names[#names + 1] = name
      end
      local size, last = MAX_PAGE_BYTES - MAX_PAGE_BYTES % width, #rows
      if #text > size then
        -- Entries are mostly appended, so pages are left full.
        if string.sub(text, -width) ~= changes[to] then
          size = math.ceil(#text / width / math.ceil(#text / size)) * width
        end
        for from = size + 1, #text, size do
          local next_name = group .. string.sub(text, from, from + width - 1)
          names[#names + 1] = '0'
          names[#names + 1] = next_name
          rows[last + 1], rows[last + 2] = '#' .. next_name, string.sub(text, from, from + size - 1)
          last = last + 2
        end
        text = string.sub(text, 1, size)
      end
      rows[last + 1], rows[last + 2] = '#' .. name, text
    end
    at = to + 1
  end
end
