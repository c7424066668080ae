-- The wait after a failed run (policy.rs).
-- luacheck: std lua51, read globals struct bit, max line length 120, ignore 211

-- Limbs of 16 bits, the lowest first, modulo 2^64.
local function carry(a, b, c, d)
  b = b + math.floor(a / 65536)
  c = c + math.floor(b / 65536)
  d = d + math.floor(c / 65536)
  return a % 65536, b % 65536, c % 65536, d % 65536
end

local function times(a, b, c, d, e, f, g, h)
  return carry(a * e, a * f + b * e, a * g + b * f + c * e, a * h + b * g + c * f + d * e)
end

-- x ^ (x >> (16 + bits)).
local function xor_shifted(a, b, c, d, bits)
  local power = 2^bits
  local function part(low, high)
    return math.floor(low / power) + high % power * (65536 / power)
  end
  return bit.bxor(a, part(b, c)), bit.bxor(b, part(c, d)), bit.bxor(c, part(d, 0)), d
end

-- The finaliser of SplitMix64, in upper and lower 32 bits.
local function mix(high, low)
  local a, b, c, d = low % 65536, math.floor(low / 65536), high % 65536, math.floor(high / 65536)
  a, b, c, d = xor_shifted(a, b, c, d, 14)
  a, b, c, d = times(a, b, c, d, 0xe5b9, 0x1ce4, 0x476d, 0xbf58)
  a, b, c, d = xor_shifted(a, b, c, d, 11)
  a, b, c, d = times(a, b, c, d, 0x11eb, 0x1331, 0x49bb, 0x94d0)
  return d * 65536 + c, b * 65536 + a
end

-- floor(a * b / 2^32); a < 2^53, b < 2^32.
local function scaled(a, b)
  local high, low = math.floor(a / 2^32), a % 2^32
  local upper, lower = math.floor(b / 65536), b % 65536
  return high * b + math.floor((low * upper + math.floor(low * lower / 65536)) / 65536)
end

-- `own` is nil unless the task or the kind overrides something.
local function policy_over(own, base)
  if not own then
    return base
  end
  local longest = own.max_backoff or math.max(base.max_backoff, own.backoff or 0)
  return {
    max_attempts = own.max_attempts or base.max_attempts, max_retries = own.max_retries or base.max_retries,
    backoff = math.min(own.backoff or base.backoff, longest), max_backoff = longest,
    timeout = own.timeout or base.timeout,
  }
end

local function wait_of(policy, failures, id, attempt)
  local wait = math.min(policy.backoff * 2^math.min(math.max(failures - 1, 0), 63), policy.max_backoff)
  local high, low = struct.unpack('>I4I4', id, 9)
  low = low + attempt
  local upper = mix((high + math.floor(low / 2^32)) % 2^32, low % 2^32)
  return wait - math.floor(scaled(wait, upper) / 5)
end
