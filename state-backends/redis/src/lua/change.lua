-- What concerns all shards: settings, pause, hold, reset. The rules are those of rules/change.rs.
--
-- ARGV: idle expiry in ms, memory (11), the change, interval, running limit ('keep', '' for any number, or a number),
-- what to do with a queue that is there, length of the hold.

local IDLE_MS, MEMORY = tonumber(ARGV[1]), memory_from(2)
local CHANGE, INTERVAL, LIMIT, ON_EXISTING, HOLD = ARGV[13], number(ARGV[14]), ARGV[15], ARGV[16], number(ARGV[17])
local MAX_LEAD = 1000000

local function limit_over(stored)
  if LIMIT == 'keep' then
    return stored
  end
  return number(LIMIT)
end

local function revise(record)
  record.revision = math.max(add(record.revision, 1), record.seen_at)
end

local function is_set(record)
  return (INTERVAL or record.interval) == record.interval and limit_over(record.max_running) == record.max_running
end

local function set(record, now)
  local max_running, interval = limit_over(record.max_running), INTERVAL or record.interval
  if interval ~= record.interval then
    -- The last slot stands some old intervals before `free_at`, one or the weight of its job, and at most a lead ahead.
    -- The next one comes as many new intervals after it.
    local to_come = sub(sub(record.free_at, now), MAX_LEAD)
    local rest = math.fmod(to_come, record.interval)
    local intervals = math.max((to_come - rest) / record.interval + (rest > 0 and 1 or 0), 1)
    record.free_at = sub(add(record.free_at, mul(interval, intervals)), mul(record.interval, intervals))
    break_line(record, add(record.current, 1))
  end
  local was_full = is_full(record, record.running)
  record.interval = interval
  record.max_running = max_running
  if was_full and not is_full(record, record.running) then
    count_slots_from(record, now)
  end
  revise(record)
end

local function pause(record)
  record.paused = true
  revise(record)
end

local function resume(record, now)
  if record.paused then
    count_slots_from(record, now)
  end
  record.paused = false
  revise(record)
end

local function hold(record, until_when)
  if until_when > record.held_until then
    record.held_until = until_when
    break_line(record, add(record.current, 1))
    revise(record)
  end
end

local function reset(record, now)
  record.paused = false
  record.held_until = 0
  record.free_at = math.min(record.free_at, add(add(now, record.interval), MAX_LEAD))
  break_line(record, add(record.ticket, 1))
  record.gaps_until = record.ticket
  record.longest_lead = 0
  forget_all(record)
  revise(record)
end

local function carry_out(record, now)
  if CHANGE == 'open' then
    if (ON_EXISTING == 'replace' or ON_EXISTING == 'reset') and not is_set(record) then
      set(record, now)
    end
    if ON_EXISTING == 'reset' then
      reset(record, now)
    end
  elseif CHANGE == 'set' then
    set(record, now)
  elseif CHANGE == 'pause' then
    pause(record)
  elseif CHANGE == 'resume' then
    resume(record, now)
  elseif CHANGE == 'hold' then
    hold(record, add(now, HOLD))
  else
    reset(record, now)
  end
end

local function reply(record, interval, max_running)
  local values = memory_of(record)
  table.insert(values, 1, 'ok')
  values[#values + 1] = text(interval)
  values[#values + 1] = text(max_running)
  return values
end

local record, unreadable = load_record()
-- Every shard opens its queue first: the place to find out what a user may not do.
unreadable = unreadable or (CHANGE == 'open' and denied())
if unreadable then
  return unreadable
end
if not record and CHANGE == 'open' and MEMORY.revision == 0 then
  if not INTERVAL then
    return refusal('not-found')
  end
  record = new_record(INTERVAL, limit_over(nil))
  record.incarnation = read_incarnation()
  local now = arrive(record, read_clock())
  forget_all(record)
  save_record(record, now, IDLE_MS)
  return reply(record, nil, nil)
end
if record and CHANGE == 'open' and ON_EXISTING == 'fail' then
  if not is_set(record) then
    return { 'conflict', text(record.interval), text(record.max_running) }
  end
end
local found = record ~= nil
record = record or recall(MEMORY)
if not record then
  return refusal('not-found')
end

local now, back = arrive(record, read_clock())
lift(record, now, read_incarnation(), MEMORY, nil)
-- From here on it writes.
if not found then
  forget_all(record)
end
move_leases(back)
local interval, max_running = record.interval, record.max_running
carry_out(record, now)
save_record(record, now, IDLE_MS)
return reply(record, interval, max_running)
