-- The command in progress (mod.rs of the rules).
-- luacheck: read globals Counted Occurrence
-- luacheck: std lua51, read globals rows State limits plus minus hour_of default_settings, globals work
-- luacheck: max line length 120
-- luacheck: ignore 211 241

local MAINTENANCE_BUDGET = 200

local work = {}

function work.begin(now, queue)
  work.now = now
  work.is_new = not queue
  work.queue = queue or work.new_queue(now)
  work.queue_changed = work.is_new
  local followed = work.queue.followed
  work.is_followed = followed ~= nil and followed.from <= now and now < followed['until']
    and followed['until'] - now <= limits.FOLLOWED * 3 / 2
  work.lease_clock = work.queue.lease_clock
  -- Whether this step also runs the maintenance.
  work.runs_maintenance = false
  work.hour_passed = false
  -- Counters of plain tasks (plain.lua), and prefixes of the rows and entries of their ends.
  work.plain = {}
  work.plain_run, work.plain_most, work.plain_end, work.plain_ended = nil, nil, nil, nil
  -- Tasks that became ready and still are.
  work.readied = {}
  work.more_leased = 0
  -- Whether a task has ended since the last maintenance.
  work.unnotified = false
  work.notifies = false
end

function work.new_queue(now)
  return {
    settings = default_settings(), paused = false, incarnation = now, lease_clock = 0, seen = now, latest = now,
    maintenance_due = false,
  }
end

function work.insert(x, payload)
  rows.count(x.kind, x.state, 1)
  work.note(nil, x)
  rows.insert(x, payload)
end

function work.save(before, after)
  local was, is = before.state, after.state
  if was ~= is or before.kind ~= after.kind then
    rows.count(before.kind, was, -1)
    rows.count(after.kind, is, 1)
  end
  if is == State.Ready and (was == State.Waiting or was == State.Blocked) then
    after.admitted = work.now
  end
  work.readied[after.id] = is == State.Ready or nil
  if is == State.Leased then
    work.more_leased = work.more_leased + 1
  end
  if was == State.Leased then
    work.more_leased = work.more_leased - 1
  end
  work.note(before, after)
  rows.put(after)
end

-- See times.rs. `first`: 0 for a wait, limits.LENGTHS + 1 for a run.
local function took(kind, first, length)
  local ms = math.floor(length / 1000)
  local _, digits = math.frexp(ms)
  local hour = hour_of(work.now)
  rows.took(kind, hour, first + math.min(digits, limits.LENGTHS - 1), 1)
  if ms > 0 then
    rows.took(kind, hour, first + limits.LENGTHS, ms)
  end
end

function work.count_occurrence(kind, occurrence, number)
  rows.took(kind, hour_of(work.now), occurrence, number)
end

function work.count_added(kind)
  rows.count(kind, Counted.EverAdded, 1)
  work.count_occurrence(kind, Occurrence.Added, 1)
end

local END_NAMES = { [State.Done] = 'Done', [State.Failed] = 'Failed', [State.Cancelled] = 'Cancelled' }

function work.count_end(kind, state)
  local name = END_NAMES[state]
  rows.count(kind, Counted['Ever' .. name], 1)
  work.count_occurrence(kind, Occurrence[name], 1)
end

function work.has_waited(kind, since)
  took(kind, 0, minus(work.now, since))
end

function work.has_run(kind, leased)
  took(kind, limits.LENGTHS + 1, minus(work.now, leased or work.now))
end

-- The running limit was reached, and fewer tasks run now.
function work.has_made_room()
  local limit = work.queue.settings.max_running
  return limit and work.more_leased < 0 and rows.leased() - work.more_leased >= limit
end

function work.change_queue()
  work.queue_changed = true
  return work.queue
end
