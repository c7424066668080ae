-- Arithmetic of microseconds and tickets: whole numbers from 0 to 2^53 - 1 that stop at both ends, as in Rust.
-- A sum or product beyond may be rounded, but never to below the end.

local MOST = 9007199254740991

local function add(a, b)
  return math.min(a + b, MOST)
end

local function sub(a, b)
  return math.max(a - b, 0)
end

local function mul(a, b)
  return math.min(a * b, MOST)
end

-- tostring() would keep 14 digits only.
local function text(number)
  return number and string.format('%.0f', number) or ''
end

-- A whole number as text() writes it, and nil for all else that tonumber() takes: 0x1F, 1.5, nan, inf.
local function whole(from)
  local number = from and string.match(from, '^%d+$') and tonumber(from)
  return number and number <= MOST and number or nil
end

-- '' stands for none.
local function number(from)
  return from ~= '' and tonumber(from) or nil
end

