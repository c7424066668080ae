-- Carries out a change: rules/change.rs.

local interval_before, max_running_before = interval, max_running

local function revise()
  revision = max(add(revision, 1), seen_at)
end

-- Slots went by while nothing could start and nobody missed them: distances count from now.
local function count_slots_from_now()
  if free_at < now then
    free_at = now
    line_from = max(line_from, add(current, 1))
  end
end

local function set()
  local was_full = running >= limit
  if INTERVAL > 0 and INTERVAL ~= interval then
    -- The last slot stands some old intervals before `free_at`, one or the weight of its job, and at most a lead ahead.
    -- The next one comes as many new intervals after it.
    local to_come = sub(sub(free_at, now), 1000000)
    local rest = math.fmod(to_come, interval)
    local intervals = max((to_come - rest) / interval + (rest > 0 and 1 or 0), 1)
    free_at = sub(add(free_at, mul(INTERVAL, intervals)), mul(interval, intervals))
    line_from = max(line_from, add(current, 1))
    interval = INTERVAL
  end
  max_running = LIMIT < 0 and max_running or LIMIT
  if was_full and (max_running == 0 or running < max_running) then
    count_slots_from_now()
  end
  revise()
end

local function reset()
  paused, held_until, longest_lead = 0, 0, 0
  free_at = min(free_at, add(add(now, interval), 1000000))
  line_from = max(line_from, add(ticket, 1))
  gaps_until = ticket
  running, shards, kept_until = 0, 0, 0
  redis.call('DEL', QUEUE, INDEX)
  revise()
end

if CHANGE == 'set' or CHANGE == 'open' and (ON_EXISTING == 'replace' or ON_EXISTING == 'reset') and not is_set() then
  set()
end
if CHANGE == 'reset' or CHANGE == 'open' and ON_EXISTING == 'reset' and not is_new_queue then
  reset()
elseif CHANGE == 'pause' then
  paused = 1
  revise()
elseif CHANGE == 'resume' then
  if paused == 1 then
    count_slots_from_now()
  end
  paused = 0
  revise()
elseif CHANGE == 'hold' and add(now, HOLD) > held_until then
  held_until = add(now, HOLD)
  line_from = max(line_from, add(current, 1))
  revise()
end
local presence, is_new

