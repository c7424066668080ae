-- Edges added and removed while a task waits (links.rs). None makes a cycle.
-- luacheck: std lua51, read globals rows State EdgeState OnFailure limits copy_task refuse, globals work
-- luacheck: max line length 120

function work.linked_to(id)
  local up = rows.task(id)
  if not up or up.state == State.Purged then
    refuse('no_task', id)
  end
  return up
end

-- Follows edges, also indirectly. Returns true if there are too many to check.
local function is_waited_for_by(x, other)
  local seen, left, many = { [x] = true }, { x }, 0
  while #left > 0 do
    local of = table.remove(left)
    for _, edge in ipairs(rows.edges_from(of, nil, limits.MAX_CYCLE_SEARCH + 1)) do
      if edge.down == other then
        return true
      end
      if not seen[edge.down] then
        seen[edge.down] = true
        left[#left + 1] = edge.down
        many = many + 1
      end
    end
    if many > limits.MAX_CYCLE_SEARCH then
      return true
    end
  end
  return false
end

-- Whether an edge from `up` fits the `edges` edges of `x` and makes no cycle.
function work.may_wait_for(x, edges, up)
  local makes_a_cycle = x.id == up.id or up.has_edges and is_waited_for_by(x.id, up.id)
  return not makes_a_cycle and edges < limits.MAX_EDGES
end

-- The task goes back to its first gate and releases what it held.
function work.link(x, edge)
  rows.insert_edge({
    up = edge[1], down = x.id, name = edge[2], on_failure = OnFailure[edge[3]], state = EdgeState.New, generation = 0,
  })
  work.back_to_edges(x)
end

function work.back_to_edges(x)
  local after = copy_task(x)
  work.notifies = true
  after.has_edges = true
  -- A gate once passed stays passed when the clock steps back.
  if x.state == State.Blocked or x.state == State.Ready then
    after.not_before = math.min(x.not_before, work.now)
  end
  work.admit(x, after)
end

function work.unlink(x, up)
  work.remove_edge(rows.edge(up, x.id))
  work.notifies = true
  if x.state == State.Waiting then
    work.admit_or_cancel(x)
  end
end
