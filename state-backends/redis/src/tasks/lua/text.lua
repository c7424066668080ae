-- The order of texts, and the Rust format of ids and durations in stored texts.
-- luacheck: std lua51, max line length 120, ignore 211

-- Lua compares by the locale of the server.
local IS_BYTEWISE = 'a' > 'Z' and '\255' > 'a'

local function is_below(a, b)
  if IS_BYTEWISE then
    return a < b
  end
  for at = 1, math.min(#a, #b) do
    local of_a, of_b = string.byte(a, at), string.byte(b, at)
    if of_a ~= of_b then
      return of_a < of_b
    end
  end
  return #a < #b
end

local function sort(texts)
  if IS_BYTEWISE then
    table.sort(texts)
  else
    table.sort(texts, is_below)
  end
end

-- Where a sorted list has an entry, or where to insert it.
local function place(list, entry)
  local low, high = 1, #list + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_below(list[middle], entry) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function behind(group)
  return string.sub(group, 1, -2) .. string.char(string.byte(group, -1) + 1)
end

local function hex(bytes)
  return (string.gsub(bytes, '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end))
end

local function display(id)
  local digits = hex(id)
  return string.sub(digits, 1, 8) .. '-' .. string.sub(digits, 9, 12) .. '-' .. string.sub(digits, 13, 16) .. '-'
    .. string.sub(digits, 17, 20) .. '-' .. string.sub(digits, 21)
end

-- Both have equal length. Nil: there is none.
local function id_before(id)
  for n = #id, 1, -1 do
    local byte = string.byte(id, n)
    if byte > 0 then
      return string.sub(id, 1, n - 1) .. string.char(byte - 1) .. string.rep('\255', #id - n)
    end
  end
end

-- Requires at least a second.
local function duration(micros)
  local fraction = string.gsub(string.format('.%06d', micros % 1000000), '%.?0*$', '')
  return string.format('%d', math.floor(micros / 1000000)) .. fraction .. 's'
end
