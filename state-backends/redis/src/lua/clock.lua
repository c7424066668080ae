-- The state's clock: rules/clock.rs.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- By how much the clock was stepped back, if it was.
local back = 0
if seen_at - now > 1000000 then
  back = seen_at - now
  free_at, held_until = sub(free_at, back), sub(held_until, back)
  lifted_at, seen_at, next_end = sub(lifted_at, back), sub(seen_at, back), sub(next_end, back)
  line_from = max(line_from, add(current, 1))
end
if seen_at < now then
  seen_at = now
end
now = seen_at

