-- Rows of workers, kinds, keys, schedules, counts, times and events (rows.rs).
-- luacheck: std lua51, globals tables rows, read globals State Occurrence EVENT_CELLS copy is_below number
-- luacheck: ignore 211 241, max line length 120

local function with_worker(worker, presence)
  local row = copy(presence)
  row.worker = worker
  return row
end

local function presences_of(entries)
  local fields, found = {}, {}
  for n, entry in ipairs(entries) do
    fields[n] = 'worker:' .. string.sub(entry, -16)
  end
  tables.get_all(fields)
  for n, entry in ipairs(entries) do
    found[n] = with_worker(string.sub(entry, -16), tables.get(fields[n]))
  end
  return found
end

function rows.presence(worker)
  return tables.get('worker:' .. worker)
end

function rows.put_presence(worker, presence)
  presence.worker = nil
  tables.set_presence(worker, presence)
end

function rows.remove_presence(worker)
  tables.set_presence(worker, nil)
end

-- Lists a presence by a later end of its lease.
local function relist(presence)
  local is_late = presence.listed < presence.ends
  if is_late then
    local row = copy(presence)
    row.worker = nil
    tables.relist(presence.worker, row)
  end
  return is_late
end

function rows.ended_presences(till, cleared, most)
  while true do
    local found = presences_of(tables.find_entries(cleared and 'E\1' or 'E\0', nil, number(till + 1), most))
    local is_listed = true
    for _, presence in ipairs(found) do
      is_listed = not relist(presence) and is_listed
    end
    if is_listed then
      return found
    end
  end
end

function rows.shortest_busy_lease(after)
  local from
  while true do
    local some = tables.find_entries('W', from, nil, 16)
    for _, presence in ipairs(presences_of(some)) do
      if presence.busy and presence.ends > after then
        return presence.lease
      end
    end
    if #some < 16 then
      return nil
    end
    from = string.sub(some[#some], 2) .. '\0'
  end
end

function rows.longest_lease(after)
  local to
  while true do
    local some = tables.find_entries('W', nil, to, 16, true)
    for _, presence in ipairs(presences_of(some)) do
      if presence.ends > after then
        return presence.lease
      end
    end
    if #some < 16 then
      return nil
    end
    to = string.sub(some[#some], 2)
  end
end

function rows.next_busy_end(after)
  local from
  while true do
    local first = presences_of(tables.find_entries('B', from, nil, 1))[1]
    if not first then
      return nil
    elseif not relist(first) then
      if first.ends > after then
        return first.ends
      end
      from = number(first.ends) .. first.worker .. '\0'
    end
  end
end

local ALL = 1000000000

function rows.presences()
  local found = presences_of(tables.find_entries('W', nil, nil, ALL))
  table.sort(found, function(a, b)
    return is_below(a.worker, b.worker)
  end)
  return found
end

local function set_named(letter, field, name, row)
  if row and not tables.get(field) then
    tables.add_entry(letter, letter .. name)
  elseif not row and tables.get(field) then
    tables.remove_entry(letter, letter .. name)
  end
  tables.set(field, row)
end

local function all_named(letter, what)
  local fields, found = {}, {}
  for n, entry in ipairs(tables.find_entries(letter, nil, nil, ALL)) do
    fields[n] = what .. string.sub(entry, 2)
  end
  tables.get_all(fields)
  for n, field in ipairs(fields) do
    found[n] = tables.get(field)
  end
  return found
end

function rows.kind(kind)
  return tables.get('kind:' .. kind)
end

function rows.put_kind(row)
  set_named('K', 'kind:' .. row.kind, row.kind, row)
end

function rows.kinds()
  return all_named('K', 'kind:')
end

function rows.key(key)
  return tables.get('key:' .. key)
end

local function list_key(letter, key, was, is)
  if is and not was then
    tables.add_entry(letter, letter .. key)
  elseif was and not is then
    tables.remove_entry(letter, letter .. key)
  end
end

local function set_key(key, row)
  local was, is = rows.key(key) or {}, row or {}
  list_key('U', key, was.needs_rebalancing, is.needs_rebalancing)
  list_key('P', key, was.limit == 0, is.limit == 0)
  tables.set('key:' .. key, row)
end

function rows.put_key(row)
  set_key(row.key, row)
end

function rows.remove_key(key)
  set_key(key, nil)
end

local function keys_of(letter, most)
  local found = {}
  for n, entry in ipairs(tables.find_entries(letter, nil, nil, most)) do
    found[n] = rows.key(string.sub(entry, 2))
  end
  return found
end

function rows.keys_to_rebalance(most)
  return keys_of('U', most)
end

function rows.paused_keys(most)
  return keys_of('P', most)
end

function rows.schedule(name)
  return tables.get('schedule:' .. name)
end

function rows.put_schedule(schedule)
  set_named('S', 'schedule:' .. schedule.name, schedule.name, schedule)
end

function rows.remove_schedule(name)
  set_named('S', 'schedule:' .. name, name, nil)
end

function rows.schedules()
  return all_named('S', 'schedule:')
end

-- The first number is that of the first state.

function rows.count(kind, counted, more)
  local row = tables.counts[kind]
  if not row then
    local field = 'count:' .. kind
    row = tables.get(field)
    if not row then
      row = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
      set_named('C', field, kind, row)
    end
    tables.counts[kind] = row
    tables.small_written[field] = true
  end
  row[counted + 1] = row[counted + 1] + more
end

function rows.counts()
  local found = {}
  for _, entry in ipairs(tables.find_entries('C', nil, nil, ALL)) do
    local kind = string.sub(entry, 2)
    local row = tables.get('count:' .. kind)
    for counted = 0, 14 do
      if row[counted + 1] ~= 0 then
        found[#found + 1] = { kind, counted, math.max(row[counted + 1], 0) }
      end
    end
  end
  return found
end

function rows.notify()
  tables.notifies = true
end

-- By hour and kind a table by cell, and a list of the hours. A command counts in one hour.

local function times_of(hour, kind)
  return string.format('times:%d:', hour) .. kind
end

function rows.took(kind, hour, cell, more)
  local row = tables.times[kind]
  if not row then
    local field = times_of(hour, kind)
    row = tables.get(field)
    if not row then
      row = {}
      local hours, is_known = tables.get('hours') or {}, false
      for _, known in ipairs(hours) do
        is_known = is_known or known == hour
      end
      if not is_known then
        hours[#hours + 1] = hour
        tables.set('hours', hours)
      end
    end
    tables.set(field, row)
    tables.times[kind] = row
  end
  row[cell] = (row[cell] or 0) + more
end

-- By the first hour of a day a table by cell.
local function days_of(kind)
  return 'days:' .. kind
end

function rows.times(kind, from)
  local found = {}
  for day, row in pairs(tables.get(days_of(kind)) or {}) do
    for cell, number in pairs(day >= from and row or {}) do
      found[#found + 1] = { day, cell, number }
    end
  end
  for _, hour in ipairs(tables.get('hours') or {}) do
    local row = hour >= from and tables.get(times_of(hour, kind))
    for cell, number in pairs(row or {}) do
      found[#found + 1] = { hour, cell, number }
    end
  end
  return found
end

local function roll_up(kind, hour)
  local times = tables.get(times_of(hour, kind)) or {}
  local days, day = tables.get(days_of(kind)) or {}, hour - hour % 24
  local row = days[day] or {}
  for cell = Occurrence.Added, Occurrence.Retried do
    local of_day = cell + EVENT_CELLS
    row[of_day] = times[cell] and (row[of_day] or 0) + times[cell] or row[of_day]
  end
  if next(row) then
    days[day] = row
    tables.set(days_of(kind), days)
  end
  tables.set(times_of(hour, kind), nil)
end

function rows.forget_times(before_hour, before_day)
  local kept, kinds = {}, {}
  for n, entry in ipairs(tables.find_entries('C', nil, nil, ALL)) do
    kinds[n] = string.sub(entry, 2)
  end
  for _, hour in ipairs(tables.get('hours') or {}) do
    if hour >= before_hour then
      kept[#kept + 1] = hour
    else
      for _, kind in ipairs(kinds) do
        roll_up(kind, hour)
      end
    end
  end
  tables.set('hours', kept)
  for _, kind in ipairs(kinds) do
    local days, changed = tables.get(days_of(kind)) or {}, {}
    for day, row in pairs(days) do
      changed[day] = day >= before_day and row or nil
    end
    tables.set(days_of(kind), next(changed) and changed or nil)
  end
end

-- 'events': the numbers of the first kept event and of the last event ever.

local function event_of(number)
  return string.format('event:%.0f', number)
end

local function kept_events()
  return tables.get('events') or { first = 1, last = 0 }
end

local function events_in(first, last)
  local fields = {}
  for number = first, last do
    fields[#fields + 1] = event_of(number)
  end
  tables.get_all(fields)
  return fields
end

function rows.put_event(event)
  local kept = kept_events()
  kept.last = kept.last + 1
  tables.set('events', kept)
  tables.set(event_of(kept.last), event)
end

function rows.events(after, most)
  local kept = kept_events()
  local first, found = math.max(after + 1, kept.first), {}
  for n, field in ipairs(events_in(first, math.min(kept.last, first + most - 1))) do
    local event = copy(tables.get(field))
    event.number = first + n - 1
    found[n] = event
  end
  return found
end

function rows.last_event()
  local kept = kept_events()
  return kept.first <= kept.last and kept.last or 0
end

function rows.forget_events(before, most)
  local kept = kept_events()
  local function is_old(field)
    return tables.get(field).at < before
  end
  if kept.first > kept.last or not is_old(event_of(kept.first)) then
    return
  end
  for _, field in ipairs(events_in(kept.first, math.min(kept.last, kept.first + most - 1))) do
    if not is_old(field) then
      break
    end
    tables.set(field, nil)
    kept.first = kept.first + 1
  end
  tables.set('events', kept)
end
