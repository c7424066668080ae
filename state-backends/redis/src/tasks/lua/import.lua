-- What becomes of tasks that come from another place (import.rs). Each is a list of its row, its payload, its result or
-- `false`, and its edges as `add` has them.
-- luacheck: std lua51, read globals tables rows State EdgeState Counted EVER is_ended after_end copy_task new_task
-- luacheck: read globals refuse, globals work, max line length 120

function work.import(tasks)
  local ids, added = {}, {}
  for n, one in ipairs(tasks) do
    ids[n] = one[1].id
  end
  tables.load(ids)
  for n, one in ipairs(tasks) do
    local id = one[1].id
    if rows.task(id) then
      added[n] = 'a' .. id
    else
      work.import_one(one[1], one[2], one[3], one[4])
      added[n] = 'n' .. id
    end
  end
  return added
end

function work.import_one(row, payload, result, edges)
  local x, most = new_task(row), work.queue.settings.max_payload
  local has_ended = is_ended(x.state)
  for _, body in ipairs({ payload, result or nil }) do
    if #body > most then
      refuse('payload', x.id, #body, most)
    end
  end
  for _, edge in ipairs(edges) do
    local up = rows.task(edge[1])
    if not up or up.state == State.Purged then
      refuse('import-upstream', x.id, edge[1])
    end
    local new = {
      up = up.id, down = x.id, name = edge[2] or nil, on_failure = edge[3], state = EdgeState.New, life = up.life,
    }
    -- One that has ended looks at nothing any more.
    if has_ended then
      new.state = is_ended(up.state) and after_end(new, up.state) or EdgeState.Open
    end
    rows.insert_edge(new)
  end
  local after = copy_task(x)
  after.has_edges = #edges > 0 or nil
  after.holds_key, after.parked, after.stop, after.wanted = nil, nil, nil, nil
  after.holds_name = x.unique and x.holds_name and not has_ended and not rows.by_name(x.unique) or nil
  if has_ended then
    after.told, after.ended_tick = true, work.ticks
  else
    after.state, after.told, after.ended_tick = State.Added, nil, nil
    work.nudges = true
  end
  local bare = new_task({ id = x.id, kind = x.kind, state = State.Added })
  work.note(nil, bare)
  work.note(bare, after)
  rows.insert(after, payload)
  rows.put_result(x.id, result or nil)
  rows.count(x.kind, after.state, 1)
  rows.count(x.kind, Counted.EverAdded, 1)
  if has_ended then
    rows.count(x.kind, EVER[x.state] or Counted.EverCancelled, 1)
  end
end
