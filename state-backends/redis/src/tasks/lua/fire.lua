-- Schedules: an instant makes its tasks exactly once, whichever worker fires it (fire.rs).
-- luacheck: std lua51, read globals rows redis is_ended copy refuse, globals work, max line length 120

-- See id.rs.
local ID_NAMESPACE = '\141\028\042\100\155\063\094\007\161\196\082\240\107\126\147\216'

-- A UUID of version 5, as TaskId::of_schedule.
local function id_of_schedule(incarnation, name, at)
  local text = string.format('schedule/%.0f/%.0f/', incarnation, at) .. name
  local bytes, n = {}, 0
  for digits in string.gmatch(string.sub(redis.sha1hex(ID_NAMESPACE .. text), 1, 32), '..') do
    n = n + 1
    bytes[n] = tonumber(digits, 16)
  end
  bytes[7], bytes[9] = bytes[7] % 16 + 80, bytes[9] % 64 + 128
  return string.char(unpack(bytes))
end

function work.fire(fire)
  local schedule = rows.schedule(fire.schedule)
  if not schedule then
    return 'stale'
  end
  local is_kept = schedule.kept == fire.from
  local is_next = schedule.next == fire.from and fire.from <= work.now
  if schedule.revision ~= fire.revision or schedule.paused or not (is_kept or is_next) then
    return 'stale'
  end
  schedule = copy(schedule)
  local runs = schedule.overlap ~= 'allow' and work.last_runs(schedule)
  local fired = 'made'
  if runs and schedule.overlap == 'skip' then
    fired = 'skipped'
  elseif runs then
    schedule.kept, schedule.may_follow = fire.from, nil
    fired = 'kept'
  else
    local made, instants = {}, {}
    for n, one in ipairs(fire.made) do
      local following = fire.made[n + 1]
      if not following or following[1] ~= one[1] then
        local id = id_of_schedule(schedule.incarnation, schedule.name, one[1])
        if one[2].id ~= id then
          refuse('wrong_id', one[2].id, id, schedule.name)
        end
      end
      instants[n], made[n] = one[1], one[2]
    end
    local added = work.add_all(made, 0, 0, schedule.name, instants)
    if #added > 0 then
      schedule.last = string.sub(added[#added], 2)
    end
    -- A kept instant is fired, or the current one is the last of several.
    schedule.kept, schedule.may_follow = nil, nil
  end
  if not is_kept then
    schedule.next = fire.next
  end
  rows.put_schedule(schedule)
  return fired
end

function work.last_runs(schedule)
  local last = schedule.last and rows.task(schedule.last)
  return last and not is_ended(last.state)
end

-- If `ended` is the last task of its schedule, a kept instant may follow.
function work.release_kept_instant(ended)
  local schedule = ended.schedule and rows.schedule(ended.schedule[1])
  if schedule and schedule.last == ended.id and schedule.kept then
    schedule = copy(schedule)
    schedule.may_follow = true
    rows.put_schedule(schedule)
    work.notifies = true
  end
end

function work.set_schedule(new)
  local was = rows.schedule(new.name)
  rows.put_schedule({
    name = new.name, revision = was and was.revision + 1 or 1, incarnation = was and was.incarnation or work.now,
    definition = new.definition, next = new.next, paused = new.paused, overlap = new.overlap, last = was and was.last,
  })
  work.notifies = true
end
