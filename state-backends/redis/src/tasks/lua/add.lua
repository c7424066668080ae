-- Inserts the tasks of an `add` (add.rs). A task with only a kind and a payload is the list of its
-- id, kind and payload; an edge the list of upstream, name and the policy's name.
-- luacheck: std lua51, read globals tables rows State EdgeState OnFailure limits copy new_task plus refuse display
-- luacheck: globals work, max line length 120

function work.add(add)
  tables.load_new(add.tasks)
  return work.add_all(add.tasks, add.age, add.sequence)
end

-- Adds all tasks or none. Returns for each a letter and the id of the task that exists now.
function work.add_all(new_tasks, age, sequence, schedule, instants)
  local added = {}
  -- By task of the batch: the holder of its unique name, which stands in for it.
  local stand_ins = {}
  for n, new in ipairs(new_tasks) do
    local how, id
    local position = sequence + n - 1
    if new[1] then
      how, id = work.add_plain(new[1], new[2], new[3], age, position)
    else
      how, id = work.add_one(new, age, position, schedule, instants and instants[n], stand_ins)
      if id ~= new.id then
        stand_ins[new.id] = id
      end
    end
    work.notifies = work.notifies or how == 'n' or how == 'r'
    added[n] = how .. id
  end
  work.flush_plain_counts('added')
  return added
end

function work.is_added(id, payload, age)
  local most = work.queue.settings.max_payload
  if #payload > most then
    refuse('too_large', id, #payload, most)
  end
  local is_there = rows.has_task(id)
  if not is_there and age > limits.LATE_ADD then
    refuse('late', id, age)
  end
  return is_there
end

function work.add_one(new, age, position, schedule, instant, stand_ins)
  local id = new.id
  if work.is_added(id, new.payload, age) then
    return 'a', id
  end
  local holder = new.unique and rows.by_name(new.unique[1])
  if holder then
    if new.on_conflict == 'refuse' then
      refuse('name_taken', holder.id, new.unique[1], holder.state)
    elseif new.on_conflict == 'replace' and holder.state ~= State.Leased then
      work.replace(holder, new)
      work.remember_replacing(new, position, schedule, instant, holder.id)
      return 'r', holder.id
    end
    return 'k', holder.id
  end
  local named = {}
  for _, edge in ipairs(new.edges or {}) do
    local up = stand_ins[edge[1]] or edge[1]
    local x = rows.task(up)
    if not x or x.state == State.Purged then
      refuse('no_upstream', id, up)
    end
    -- One task may stand in for several.
    if not named[up] then
      named[up] = true
      rows.insert_edge({
        up = up, down = id, name = edge[2], on_failure = OnFailure[edge[3]], state = EdgeState.New, generation = 0,
      })
    end
  end
  local x = work.made_of(new, position, schedule, instant)
  work.insert(x, new.payload)
  work.count_added(x.kind)
  return 'n', id
end

-- Keeps the id of a task that became another one, so that a repeated `add` does not add it again.
function work.remember_replacing(new, position, schedule, instant, holder)
  local kept = work.made_of(new, position, schedule, instant)
  kept.state, kept.holds_name, kept.has_edges = State.Purged, nil, nil
  kept.ended, kept.ended_lease_clock, kept.notified = work.now, work.lease_clock, true
  kept.error = 'it was put in the place of task ' .. display(holder)
  work.insert(kept, nil)
end

local GIVEN_FIELDS = { 'priority', 'key', 'ordered', 'unique', 'tags', 'policy', 'trace' }

local function instant_of(time)
  return time.at or plus(work.now, time.after)
end

function work.made_of(new, position, schedule, instant)
  local now = work.now
  local deadline = new.deadline and instant_of(new.deadline)
  -- A task for now does not wait, whatever the clock does.
  local not_before = new.not_before.after == 0 and 0 or instant_of(new.not_before)
  local x = new_task({ id = new.id, kind = new.kind, state = State.Added, added = work.adding_time(), due = nil })
  if position > 0 then
    x.position = position
  end
  for _, name in ipairs(GIVEN_FIELDS) do
    local value = new[name]
    if value then
      x[name] = value
    end
  end
  if new.weight > 1 then
    x.weight = new.weight
  end
  if new.unique then
    x.holds_name = true
  end
  if deadline then
    x.deadline = deadline
  end
  if not_before > 0 then
    x.not_before = not_before
  end
  if new.edges then
    x.has_edges = true
  end
  if schedule then
    x.schedule = { schedule, instant }
  end
  work.make_due(x)
  if not x.has_edges and not_before > now then
    x.state = State.Scheduled
  elseif not x.has_edges and not x.key then
    x.state = State.Ready
  end
  return x
end

function work.make_due(x)
  x.due = work.due(x, x.not_before)
end

function work.due(x, not_before)
  return math.min(math.max(x.added, not_before) - x.priority * work.queue.settings.ageing, limits.LARGEST)
end

-- The holder of the unique name becomes the new task and keeps its position.
function work.replace(before, new)
  local x = work.made_of(new, before.position or 0)
  x.id, x.added, x.token, x.generation = before.id, before.added, before.token, before.generation
  x.has_edges, x.schedule = before.has_edges, before.schedule
  x.state, x.worker, x.leased, x.history = State.Added, before.worker, before.leased, before.history
  work.make_due(x)
  rows.put_payload(x.id, new.payload)
  work.save(before, x)
  work.free(before, x)
end
