-- Changes for all workers by an operator or an application (change.rs). A change of settings has
-- only the settings that change; `max_running` 0: unlimited; a kind with `false`: its policy is
-- removed.
-- luacheck: std lua51, read globals rows copy refuse limits AttemptEnd, globals work, max line length 120

local function settings_on(change, settings)
  local changed = copy(settings)
  for name, value in pairs(change) do
    changed[name] = value
  end
  if change.max_running == 0 then
    changed.max_running = nil
  end
  local kinds = copy(settings.kinds or {})
  for kind, own in pairs(change.kinds or {}) do
    kinds[kind] = own or nil
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

-- The start of a pause. Pausing again does not change it.
local function since(was_paused, at)
  if was_paused then
    return at
  end
  return work.now
end

function work.change(change)
  work.read_lease_clock()
  local what = change.what
  if what == 'open' then
    work.open(change.settings, change.on_existing)
  elseif what == 'set' then
    work.set(change.settings)
  elseif what == 'pause' then
    local queue = work.change_queue()
    queue.paused_at = since(queue.paused, queue.paused_at)
    queue.paused = true
  elseif what == 'resume' then
    local queue = work.change_queue()
    queue.paused, queue.paused_at = false, nil
    work.notifies = true
  elseif what == 'kind' then
    work.pause_kind(change.kind, change.paused)
  elseif what == 'key' then
    local was, is_paused = rows.key(change.key), change.limit == 0
    rows.put_key({
      key = change.key, limit = change.limit, needs_rebalancing = true,
      paused_at = is_paused and since(was and was.limit == 0, was and was.paused_at) or nil,
    })
    work.request_maintenance()
  elseif what == 'tasks' then
    return work.change_tasks(change)
  elseif what == 'recount' then
    return work.recount()
  elseif what == 'lost' then
    work.declare_lost(change.worker)
  elseif what == 'note' then
    work.add_note(change.task, change.text)
  elseif what == 'schedule' then
    work.set_schedule(change)
  else
    if not rows.schedule(change.name) then
      refuse('no-schedule')
    end
    rows.remove_schedule(change.name)
  end
  return work.queue.settings
end

function work.open(settings, on_existing)
  local changed = settings_on(settings, work.queue.settings)
  if work.is_new then
    work.change_queue().settings = changed
  elseif not are_same(changed, work.queue.settings) then
    if on_existing == 'fail' then
      refuse('settings', work.queue.settings)
    elseif on_existing == 'replace' then
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
    refuse('kinds', kinds)
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

-- Runs beyond a page fail in the maintenance of the next steps, as those of any dead worker.
function work.declare_lost(worker)
  local found = rows.presence(worker)
  if not found or found.cleared then
    refuse('no-worker')
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

-- The next step applies the consequences of a change.
function work.request_maintenance()
  work.change_queue().maintenance_due = true
  work.notifies = true
end
