-- Imports tasks of another store (import.rs).
-- luacheck: std lua51, read globals tables rows State STATES AttemptEnd EdgeState is_ended after_end copy_task new_task
-- luacheck: read globals refuse OnFailure is_same NO_TOKEN, globals work, max line length 120

-- A task with numbers for names, without defaults.
local function stored_form(x)
  x.state, x.added, x.due = STATES[x.state], x.added or 0, x.due or 0
  x.weight = x.weight ~= 1 and x.weight or nil
  x.token = not is_same(x.token, NO_TOKEN) and x.token or nil
  for _, run in ipairs(x.history or {}) do
    run['end'] = AttemptEnd[run['end']]
  end
  return new_task(x)
end

function work.import(tasks)
  -- By task that its unique name kept out: the stored task.
  local ids, added, stand_ins = {}, {}, {}
  for n, one in ipairs(tasks) do
    ids[n] = one.task.id
  end
  tables.load(ids)
  for n, one in ipairs(tasks) do
    local x = stored_form(one.task)
    local id = x.id
    local holder = x.unique and x.holds_name and not is_ended(x.state) and rows.by_name(x.unique[1])
    if rows.task(id) then
      added[n] = 'a' .. id
    elseif holder then
      stand_ins[id] = holder.id
      added[n] = 'k' .. holder.id
    else
      work.import_one(x, one.payload, one.result, one.edges, stand_ins)
      rows.put_log(id, one.log)
      added[n] = 'n' .. id
    end
  end
  return added
end

function work.import_one(x, payload, result, edges, stand_ins)
  local most = work.queue.settings.max_payload
  local has_ended = is_ended(x.state)
  for _, body in ipairs({ payload, result }) do
    if #body > most then
      refuse('too_large', x.id, #body, most)
    end
  end
  local named = {}
  for _, edge in ipairs(edges) do
    local of = stand_ins[edge[1]] or edge[1]
    local up = not named[of] and rows.task(of)
    if not named[of] and (not up or up.state == State.Purged) then
      refuse('not_imported', x.id, edge[1])
    end
    local new = up and {
      up = up.id, down = x.id, name = edge[2], on_failure = OnFailure[edge[3]], state = EdgeState.New,
      generation = up.generation,
    }
    -- An ended task checks no upstreams.
    if new and has_ended then
      new.state = is_ended(up.state) and after_end(new, up.state) or EdgeState.Open
    end
    -- One task may stand in for several.
    if new then
      rows.insert_edge(new)
    end
    named[of] = true
  end
  local after = copy_task(x)
  after.has_edges = #edges > 0 or nil
  after.holds_key, after.unserved, after.stop, after.retained = nil, nil, nil, nil
  after.holds_name = x.unique and x.holds_name and not has_ended or nil
  if has_ended then
    after.notified, after.ended_lease_clock = true, work.lease_clock
  else
    after.state, after.notified, after.ended_lease_clock = State.Added, nil, nil
    work.notifies = true
  end
  local bare = new_task({ id = x.id, kind = x.kind, state = State.Added })
  work.note(nil, bare)
  work.note(bare, after)
  rows.insert(after, payload)
  rows.put_result(x.id, result)
  rows.count(x.kind, after.state, 1)
  work.count_added(x.kind)
  if has_ended then
    work.count_end(x.kind, x.state)
  end
end
