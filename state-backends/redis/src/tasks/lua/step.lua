-- One step of a worker (step.rs). A run is its id and token, then its outcome or progress. Leased
-- tasks are ids until main.lua replaces them by rows at the end of the command.
-- luacheck: std lua51, read globals rows tables State AttemptEnd Counted limits copy copy_task plus minus refuse
-- luacheck: read globals is_leased_to is_same is_ended
-- luacheck: read globals READY NIL plain_size plain_kind MAINTENANCE_INTERVAL_US, globals work, max line length 120

-- In µs. A worker that was notified of a due schedule then checks whether its task was made.
local SCHEDULE_CHECK_DELAY_US = 1000000

local function load_said(step)
  local ids = {}
  for _, list in ipairs({ step.complete, step.progress, step.held or {} }) do
    for _, run in ipairs(list) do
      ids[#ids + 1] = run[1]
    end
  end
  for _, reported in ipairs(step.log) do
    ids[#ids + 1] = reported.id
  end
  tables.load(ids)
end

function work.step(step)
  local worker = step.worker
  local was = rows.presence(worker)
  if was and was.sequence >= step.sequence then
    refuse('superseded', step.sequence, worker)
  end
  work.read_lease_clock()
  work.write_time(step)
  local has_forgotten = (was and was.sequence or 0) < step.acknowledged
  if has_forgotten then
    -- The store was rolled back or lost, and could issue earlier tokens again.
    work.begin_incarnation(step)
  end
  local reply = { leased = {}, lost = {}, stop = {}, schedules = {}, refused = {} }
  local is_alive = was and was.ends > work.lease_clock
  local is_known = step.held or is_alive and not has_forgotten
  load_said(step)
  if step.held or has_forgotten then
    work.adopt(step)
  end
  if step.held then
    work.resync(step, is_alive, reply)
  end
  for _, reported in ipairs(step.log) do
    work.write_log(worker, reported)
  end
  for _, completion in ipairs(step.complete) do
    local completed = work.complete(worker, completion)
    if completed == 'refused' then
      reply.refused[#reply.refused + 1] = completion[1]
    elseif completed == 'lost' then
      reply.lost[#reply.lost + 1] = completion[1]
    end
  end
  work.flush_plain_counts('ended')
  for _, progress in ipairs(step.progress) do
    local x = rows.task(progress[1])
    if x and is_leased_to(x, worker, progress[2]) then
      local after = copy_task(x)
      after.progress, after.prefetched = progress[3], nil
      work.save(x, after)
    end
  end
  if not is_known then
    -- A late request must not lease to a dead worker.
    if was and not has_forgotten then
      local presence = copy(was)
      presence.sequence = step.sequence
      rows.put_presence(worker, presence)
    end
    reply.resync = true
    return reply
  end
  local served = work.serve(step)
  reply.more = work.run_maintenance(worker)
  reply.may_prefetch = not (work.queue.paused or work.queue.settings.max_running) and #served == #step.kinds
  local want = work.may_lease(step, served)
  local most = want + (reply.may_prefetch and step.ahead or 0)
  local ready = most > 0 and rows.ready_entries(served, step.at_least, most) or {}
  local admission = work.admit_some(step, served, most - #ready)
  if admission.some and most > 0 then
    ready = rows.ready_entries(served, step.at_least, most)
  end
  local room = work.lease(step, ready, want, reply)
  reply.more = reply.more or work.has_more(admission, reply)
  -- A task found at its upstreams may have ended after the notifications.
  reply.more = reply.more or work.unnotified
  for n, x in ipairs(rows.to_stop(worker, limits.MAX_HELD)) do
    reply.stop[n] = { x.id, x.stop }
  end
  local may_hold = not was or was.busy or step.held or has_forgotten
  local busy = #reply.leased > 0 or may_hold and rows.holds_some(worker) or false
  if busy and not (was and was.busy) then
    -- An idle worker with a longer lease would poll too late to see this lease end.
    local longest = rows.longest_lease(work.lease_clock)
    work.notifies = work.notifies or longest and longest > step.lease
  end
  rows.put_presence(worker, {
    label = step.label, sequence = step.sequence, lease = step.lease, ends = plus(work.lease_clock, step.lease),
    kinds = step.kinds, version = limits.RULES_VERSION, since = was and was.since or work.now, seen = work.now,
    busy = busy, cleared = false,
    at_least = step.at_least, room = room,
  })
  if work.runs_maintenance then
    reply.schedules = work.due_schedules()
  end
  if #reply.leased < step.want then
    reply.next = work.next_event(work.next_poll(admission))
  end
  return reply
end

-- Held now or until now, with the last reported token of each.
local function reported_runs(step)
  local runs = {}
  for _, list in ipairs({ step.held or {}, step.complete }) do
    for _, run in ipairs(list) do
      runs[#runs + 1] = run
    end
  end
  return runs
end

local function keeps_name(x)
  return x.holds_name and x.unique and x.unique[2] == 'ended' or nil
end

-- Returns runs to their worker that a rolled-back store does not know.
function work.adopt(step)
  for _, run in ipairs(reported_runs(step)) do
    local id, token = run[1], run[2]
    local x = rows.task(id)
    if x and not is_ended(x.state)
      and (x.token[1] < token[1] or x.token[1] == token[1] and x.token[2] < token[2])
    then
      local adopted = copy_task(x)
      adopted.state, adopted.worker, adopted.leased, adopted.token = State.Leased, step.worker, work.now, token
      adopted.prefetched = nil
      adopted.holds_key, adopted.holds_name, adopted.unserved = x.key and true or nil, keeps_name(x), nil
      adopted.not_before = math.min(x.not_before, work.now)
      work.save(x, adopted)
      rows.count(x.kind, Counted.EverLeased, 1)
      -- Tokens rise, even if the clock was stepped back.
      if token[1] >= work.queue.incarnation then
        work.change_queue().incarnation = token[1]
        work.begin_incarnation(step)
      end
    end
  end
end

-- The tasks held by a worker become those that it reports.
function work.resync(step, is_alive, reply)
  local reported = {}
  for _, run in ipairs(reported_runs(step)) do
    reported[run[1]] = run
  end
  for _, x in ipairs(rows.held_by(step.worker, limits.MAX_HELD)) do
    local run = reported[x.id]
    if not run or not is_same(run[2], x.token) then
      if is_alive then
        work.give_back(x, AttemptEnd.lost)
      else
        work.worker_lost(x, 'its worker was silent for longer than its lease')
      end
    end
  end
  for _, run in ipairs(step.held) do
    local x = rows.task(run[1])
    if not x or not is_leased_to(x, step.worker, run[2]) then
      reply.lost[#reply.lost + 1] = run[1]
    end
  end
end

function work.may_lease(step, served)
  local want = (work.queue.paused or #served == 0) and 0 or step.want
  local limit = work.queue.settings.max_running
  if limit and want > 0 then
    want = math.min(want, minus(limit, rows.leased()))
  end
  return want
end

-- Whether a task can be leased ahead of a free permit: no task waits for its key; and if it kills
-- its worker, the next run is counted.
local function can_wait_in_hand(x)
  return not x.key and (x.failures or 0) == 0 and (x.returns or 0) == 0 and work.policy(x).max_attempts > 1
end

-- Beyond `want`, tasks are leased ahead of free permits. Returns the remaining room; nil: any task
-- fits.
function work.lease(step, ready, want, reply)
  local free = step.free_capacity or {}
  local room, is_empty = free.weight, free.empty
  if #ready == 0 then
    return not is_empty and room or nil
  end
  local size, leased = 0, reply.leased
  local ids = rows.load(ready)
  for n, entry in ipairs(ready) do
    local id = ids[n]
    local row = not work.is_followed and tables.plain(id, READY)
    local x = not row and rows.task(id)
    if x and x.deadline and x.deadline <= work.now then
      work.finish(x, State.Failed, 'its deadline passed before it was started')
      -- The end of this task may have admitted another one.
      reply.more = true
      break
    end
    local prefetched = #leased >= want
    -- Less urgent tasks do not overtake one that must wait for a permit.
    if prefetched and (row or x) and not can_wait_in_hand(x or { kind = plain_kind(row) }) then
      break
    end
    -- The limit may have been lowered a moment ago.
    if row or x and not (x.key and rows.leased_of_key(x.key) >= work.key_limit(x.key)) then
      local weight = x and x.weight or 1
      -- Lighter tasks do not overtake a heavy one, or it might wait for ever.
      if room and not is_empty and weight > room then
        break
      end
      local payload = not row and rows.payload(id)
      if not row and not payload then
        work.finish(x, State.Failed, 'its payload is not stored any more')
        reply.more = true
        break
      end
      size = size + (row and plain_size(row) or #payload)
      if size > limits.MAX_REPLY and #leased > 0 then
        reply.more = true
        break
      end
      if row then
        work.lease_plain(step, id, row, entry, prefetched)
      else
        local after = copy_task(x)
        after.state, after.worker, after.leased, after.progress = State.Leased, step.worker, work.now, nil
        after.token = { work.incarnation_after(x.token[1], step), math.min(x.token[2] + 1, limits.MAX_ATTEMPT) }
        after.holds_name, after.prefetched = keeps_name(x), prefetched or nil
        work.save(x, after)
        rows.count(x.kind, Counted.EverLeased, 1)
        work.has_waited(x.kind, math.max(x.added, x.not_before))
      end
      leased[#leased + 1] = id
      room, is_empty = room and math.max(room - weight, 0), nil
    end
  end
  work.flush_plain_counts('leased')
  return not is_empty and room or nil
end

-- Ignores events with a notification. Returns at most `soonest`.
function work.next_event(soonest)
  local now = work.now
  local function sooner(other)
    if other and (not soonest or other < soonest) then
      soonest = other
    end
  end
  local scheduled, deadline = rows.next_scheduled(), rows.next_deadline()
  sooner(scheduled and (scheduled > now and minus(scheduled, now) or work.poll_interval()))
  sooner(deadline and minus(deadline, now))
  -- The next maintenance finds leases that have ended since the last one.
  local maintained_at = work.queue.lease_clock
  local busy_end = rows.next_busy_end(maintained_at)
  if busy_end then
    -- Silence counts for at most a quarter of a lease, so some worker polls as often.
    local lease = rows.shortest_busy_lease(maintained_at)
    local left = busy_end > work.lease_clock and minus(busy_end, work.lease_clock) or MAINTENANCE_INTERVAL_US
    sooner(math.min(left, lease and math.floor(lease / 4) or limits.LARGEST))
  end
  -- The notified worker makes the task. Others poll again, since that worker may have died.
  local delay = work.runs_maintenance and SCHEDULE_CHECK_DELAY_US or MAINTENANCE_INTERVAL_US
  for _, schedule in ipairs(rows.schedules()) do
    if not schedule.paused then
      sooner(schedule.next and (schedule.next > now and minus(schedule.next, now) or delay))
      sooner(schedule.kept and schedule.may_follow and delay)
    end
  end
  return soonest
end

function work.due_schedules()
  local due = {}
  for _, schedule in ipairs(rows.schedules()) do
    -- If the last task has another schedule's unique name, nothing reports its end.
    local may_follow = schedule.kept and (schedule.may_follow or not work.last_runs(schedule))
    local at = may_follow and schedule.kept or schedule.next
    if at and at <= work.now and not schedule.paused then
      due[#due + 1] = { schedule = schedule, at = at, now = work.now }
    end
  end
  return due
end

-- For each leased task its id, row, and payload unless the row is plain; the policies; the time.
function work.with_leased(reply)
  local leased, all, settings = reply.leased, {}, work.queue.settings
  for n, id in ipairs(leased) do
    local payload, at = tables.payloads[id], 3 * n
    all[at - 2], all[at - 1] = id, tables.rows[id]
    all[at] = payload == true and tables.body(tables.payloads, 'p', id) or payload or ''
  end
  reply.leased = nil
  return { reply, all, settings.policy, #leased > 0 and settings.kinds or NIL, work.now }
end
