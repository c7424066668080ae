-- Changes by an operator or an application (change.rs). A change of settings has only what changes.
-- luacheck: std lua51, read globals rows copy refuse fail variant limits AttemptEnd, globals work, max line length 120

local function settings_on(change, settings)
  local changed = copy(settings)
  for name, value in pairs(change) do
    changed[name] = value
  end
  local limit = change.max_running
  changed.max_running = settings.max_running
  if limit ~= 'keep' then
    changed.max_running = limit ~= 'unlimited' and limit.at_most or nil
  end
  local kinds = copy(settings.kinds or {})
  for kind, own in pairs(change.kinds or {}) do
    kinds[kind] = next(own) and own
  end
  changed.kinds = next(kinds) and kinds
  return changed
end

local function are_same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then
    return a == b
  end
  for name, value in pairs(a) do
    if not are_same(value, b[name]) then
      return false
    end
  end
  for name in pairs(b) do
    if a[name] == nil then
      return false
    end
  end
  return true
end

-- Pausing again does not change the start.
local function since(was_paused, at)
  if was_paused then
    return at
  end
  return work.now
end

function work.change(change)
  work.read_lease_clock()
  local what, of = variant(change)
  if what == 'open' then
    work.open(of[1], of[2])
  elseif what == 'set' then
    work.set(of)
  elseif what == 'pause' then
    local queue = work.change_queue()
    queue.paused_at = since(queue.paused, queue.paused_at)
    queue.paused = true
  elseif what == 'resume' then
    local queue = work.change_queue()
    queue.paused, queue.paused_at = false, nil
    work.notifies = true
  elseif what == 'kind' then
    work.pause_kind(of[1], of[2])
  elseif what == 'key' then
    local key, limit = of[1], of[2]
    local was, is_paused = rows.key(key), limit == 0
    rows.put_key({
      key = key, limit = limit, needs_rebalancing = true,
      paused_at = is_paused and since(was and was.limit == 0, was and was.paused_at) or nil,
    })
    work.request_maintenance()
  elseif what == 'tasks' then
    return work.change_tasks(of)
  elseif what == 'recount' then
    return work.recount()
  elseif what == 'declare_lost' then
    work.declare_lost(of)
  elseif what == 'note' then
    work.add_note(of[1], of[2])
  elseif what == 'schedule' then
    work.set_schedule(of)
  elseif what == 'unschedule' then
    if not rows.schedule(of) then
      refuse('no_schedule', of)
    end
    rows.remove_schedule(of)
  else
    fail('unknown', 'the change ' .. what)
  end
  return work.queue.settings
end

function work.open(settings, on_existing)
  local changed = settings_on(settings, work.queue.settings)
  if work.is_new then
    work.change_queue().settings = changed
  elseif not are_same(changed, work.queue.settings) then
    if on_existing == 'fail' then
      refuse('other_settings', work.queue.settings)
    elseif on_existing ~= 'keep' then
      work.set(settings)
    end
  end
end

function work.set(settings)
  local changed = settings_on(settings, work.queue.settings)
  local kinds = 0
  for _ in pairs(changed.kinds or {}) do
    kinds = kinds + 1
  end
  if kinds > limits.MAX_KIND_POLICIES then
    refuse('too_many_kinds', kinds)
  end
  local queue = work.change_queue()
  if changed.key_limit ~= queue.settings.key_limit then
    queue.rebalance_after = ''
  end
  queue.settings = changed
  work.request_maintenance()
end

function work.pause_kind(kind, paused)
  local row = rows.kind(kind)
  local served_until = row and row.served_until or 0
  local is_open = not paused and served_until > work.lease_clock or nil
  local paused_at = paused and since(row and row.paused, row and row.paused_at) or nil
  rows.put_kind({
    kind = kind, paused = paused or nil, paused_at = paused_at, served_until = served_until, open = is_open,
    needs_rebalancing = true,
  })
  work.request_maintenance()
end

-- Runs beyond a page fail in the maintenance, as those of any dead worker.
function work.declare_lost(worker)
  local found = rows.presence(worker)
  if not found or found.cleared then
    refuse('no_worker', worker)
  end
  local lost = copy(found)
  lost.worker = worker
  local why = 'its worker (' .. work.name_of(lost) .. ') was declared lost'
  local held = rows.held_by(worker, limits.MAX_PAGE)
  for _, x in ipairs(held) do
    work.worker_lost(x, why)
  end
  if lost.ends > work.lease_clock then
    lost.ends = work.lease_clock
  end
  lost.cleared = #held < limits.MAX_PAGE
  lost.busy = lost.busy and not lost.cleared
  rows.put_presence(worker, lost)
  work.request_maintenance()
end

function work.request_maintenance()
  work.change_queue().maintenance_due = true
  work.notifies = true
end
