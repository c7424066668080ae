-- Events for followers, as rows of event.rs (follow.rs).
-- luacheck: std lua51, read globals rows State limits plus minus, globals work, max line length 120

local MAX_FORGOTTEN_EVENTS = 2000

local function is_present(x)
  return x and x.state ~= State.Purged and x.state or nil
end

function work.note(before, after)
  if not work.is_followed then
    return
  end
  local from, to = is_present(before), is_present(after)
  if from == to then
    return
  end
  local has_new_error = not before or before.error ~= after.error or before.failures < after.failures
  local runs = from == State.Leased or to == State.Leased
  rows.put_event({
    at = work.now, task = after.id, kind = after.kind, from = from, to = to, attempt = after.token[2],
    worker = runs and after.worker or nil, error = has_new_error and after.error or nil,
  })
end

function work.follow(follow)
  local now = work.now
  local noted = work.is_followed and work.queue.followed
  local from = noted and noted.from or now
  if not noted or minus(noted['until'], now) <= limits.FOLLOWED then
    work.change_queue().followed = { from = from, ['until'] = plus(now, limits.FOLLOWED * 3 / 2) }
  end
  local mark = follow.after
  if not mark then
    return { events = {}, mark = { number = rows.last_event(), at = now }, missed = false }
  end
  -- The last event is removed last: a lower number than the follower's shows a rollback.
  local known = rows.last_event()
  if known > 0 and known < mark.number then
    return { events = {}, mark = { number = known, at = now }, missed = true }
  end
  local events, number, at = rows.events(mark.number, follow.most), mark.number, now
  local last = events[#events]
  if last then
    number = last.number
    at = #events >= follow.most and math.max(last.at, mark.at) or now
  end
  work.forget_events()
  return {
    events = events, mark = { number = number, at = at },
    missed = not noted or mark.at < from or plus(mark.at, limits.KEEP_EVENTS) < now,
  }
end

function work.forget_events()
  local noted = work.queue.followed
  if not noted then
    return
  end
  rows.forget_events(minus(work.now, limits.KEEP_EVENTS), MAX_FORGOTTEN_EVENTS)
  if plus(noted['until'], limits.KEEP_EVENTS) < work.now and rows.last_event() == 0 then
    work.change_queue().followed = nil
  end
end
