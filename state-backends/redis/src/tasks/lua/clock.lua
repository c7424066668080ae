-- The lease clock (clock.rs).
-- luacheck: std lua51, read globals struct bit rows limits plus minus hour_of mix, globals work, max line length 120

local GRACE_US = 7500000
local MAX_SKIPPED = 2^20
local MAINTENANCE_INTERVAL_US = 100000

function work.read_lease_clock()
  local passed = minus(work.now, work.queue.seen)
  local counts = passed
  work.was_silent = false
  if passed > math.floor(limits.MIN_LEASE / 4) then
    local shortest = rows.shortest_busy_lease(work.queue.lease_clock)
    local quarter = shortest and math.floor(shortest / 4) or GRACE_US
    work.was_silent = passed > quarter
    if work.was_silent then
      -- A clock that goes back and forth counts each instant once.
      local unseen = shortest and 0 or minus(work.now, work.queue.latest)
      counts = math.max(quarter, math.min(unseen, limits.KEEP_IDS / 2))
    end
  end
  work.lease_clock = plus(work.queue.lease_clock, counts)
end

function work.write_time(step)
  local now, lease_clock, queue = work.now, work.lease_clock, work.queue
  if work.was_silent then
    work.begin_incarnation(step)
  end
  work.runs_maintenance = queue.maintenance_due
  if work.is_new or now < queue.seen or minus(now, queue.seen) >= MAINTENANCE_INTERVAL_US then
    work.runs_maintenance = true
    work.hour_passed = hour_of(now) ~= hour_of(queue.seen)
    work.change_queue()
    queue.seen, queue.lease_clock, queue.latest = now, lease_clock, math.max(queue.latest, now)
  end
end

-- The time, or an instant after the floor that is mixed from the step.
local function later_than(floor, step)
  local now = work.now
  if now >= floor then
    return now
  end
  local high, low = struct.unpack('>I4I4', step.worker, 9)
  local function xor(a, b, c)
    return bit.bxor(a, b, c) % 2^32
  end
  -- The sequence number is rotated by 32 bits.
  local sequence = step.sequence
  local _, mixed = mix(xor(math.floor(now / 2^32), sequence % 2^32, high),
    xor(now % 2^32, math.floor(sequence / 2^32), low))
  return plus(floor, mixed % MAX_SKIPPED)
end

function work.begin_incarnation(step)
  local incarnation = later_than(plus(work.queue.incarnation, 1), step)
  work.change_queue().incarnation = incarnation
end

function work.incarnation_after(before, step)
  return later_than(math.max(work.queue.incarnation, before), step)
end

function work.adding_time()
  return math.max(work.now, work.queue.latest)
end
