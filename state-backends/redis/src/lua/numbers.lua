-- Arithmetic of microseconds and tickets: whole numbers from 0 to 2^53 - 1 that stop at both ends, as in Rust.
-- A sum or product beyond may be rounded, but never to below the end.

local min, max = math.min, math.max

local function add(a, b)
  local sum = a + b
  return sum < 2^53 and sum or 2^53 - 1
end

local function sub(a, b)
  return a > b and a - b or 0
end

local function mul(a, b)
  local product = a * b
  return product < 2^53 and product or 2^53 - 1
end

