-- Notifies downstreams of a task's end (edges.rs).
-- luacheck: std lua51, read globals rows State EdgeState OnFailure is_ended copy copy_task display, globals work
-- luacheck: max line length 120

-- Returns false if the budget leaves some.
function work.notify_downstreams(x, budget)
  -- `let_go` in Rust, where a completed task may hold its key until the application's commit.
  work.release_kept_instant(x)
  for _, edge in ipairs(rows.unnotified_from(x.id, x.generation, budget.left)) do
    budget.left = budget.left - 1
    work.pass_edge(edge, x)
    local down = rows.task(edge.down)
    if down and down.state == State.Waiting then
      work.admit_or_cancel(down)
    end
  end
  if budget.left == 0 and #rows.unnotified_from(x.id, x.generation, 1) > 0 then
    return false
  end
  local notified = copy_task(x)
  notified.notified = true
  work.save(x, notified)
  return true
end

-- The first check of an added task. Returns false if the budget leaves some upstreams.
function work.check_upstreams(x, budget)
  for _, edge in ipairs(rows.edges_to(x.id, EdgeState.New, nil, budget.left)) do
    budget.left = budget.left - 1
    local up = rows.task(edge.up)
    if up and is_ended(up.state) then
      work.pass_edge(edge, up)
    else
      local other = copy(edge)
      other.state = up and EdgeState.Open or EdgeState.Cut
      rows.put_edge(other)
    end
  end
  if budget.left == 0 and #rows.edges_to(x.id, EdgeState.New, nil, 1) > 0 then
    return false
  end
  work.admit_or_cancel(x)
  return true
end

-- The upstream may be deleted afterwards, unless others wait for it.
function work.remove_edge(edge)
  rows.remove_edge(edge)
  local up = rows.task(edge.up)
  if up and up.retained and #rows.edges_from(up.id, nil, 1) == 0 then
    local unwanted = copy_task(up)
    unwanted.retained = nil
    work.save(up, unwanted)
  end
end

local function after_end(edge, state)
  if state == State.Done then
    return EdgeState.Met
  elseif edge.on_failure == OnFailure.run then
    return EdgeState.Failed
  end
  return edge.on_failure == OnFailure.wait and EdgeState.Held or EdgeState.Cut
end

function work.pass_edge(edge, up)
  local other = copy(edge)
  other.state, other.generation = after_end(edge, up.state), up.generation
  rows.put_edge(other)
end

-- Requires that all upstreams have ended.
function work.admit_or_cancel(x)
  local cut_edge = rows.edges_to(x.id, EdgeState.Cut, nil, 1)[1]
  if cut_edge then
    return work.finish(x, State.Cancelled, 'its upstream ' .. display(cut_edge.up) .. ' did not end well')
  end
  if x.state == State.Waiting and rows.has_pending(x.id) then
    return
  end
  work.admit(x, copy_task(x))
end
