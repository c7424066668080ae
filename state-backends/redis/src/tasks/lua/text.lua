-- How Rust writes ids and durations in texts that are stored.
-- luacheck: std lua51, max line length 120, ignore 211

local function hex(bytes)
  return (string.gsub(bytes, '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end))
end

-- An id.
local function display(id)
  local digits = hex(id)
  return string.sub(digits, 1, 8) .. '-' .. string.sub(digits, 9, 12) .. '-' .. string.sub(digits, 13, 16) .. '-'
    .. string.sub(digits, 17, 20) .. '-' .. string.sub(digits, 21)
end

-- A duration of a second or more.
local function duration(micros)
  local fraction = string.gsub(string.format('.%06d', micros % 1000000), '%.?0*$', '')
  return string.format('%d', math.floor(micros / 1000000)) .. fraction .. 's'
end
