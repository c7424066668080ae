-- The gates (edges, time, key) and the holders of keys (gates.rs).
-- luacheck: std lua51, read globals rows State EdgeState copy copy_task minus line_of rank is_below, globals work
-- luacheck: max line length 120

-- A command changes at most this number; the maintenance does the rest.
local MAX_REBALANCED = 8

-- Compares in the order of the key.
local function is_behind(x, other)
  local of_x, of_other = line_of(x), line_of(other)
  if of_x ~= of_other then
    return of_x > of_other
  end
  return is_below(rank(other.added, other.position) .. other.id, rank(x.added, x.position) .. x.id)
end

-- Moves on to the next gate. `x` may be changed, `before` is stored.
function work.admit(before, x)
  x.unserved = nil
  if x.has_edges and rows.has_pending(x.id) then
    x.holds_key = nil
    x.state = #rows.edges_to(x.id, EdgeState.New, nil, 1) > 0 and State.Added or State.Waiting
  elseif x.not_before > work.now then
    x.state = State.Scheduled
  elseif x.key then
    return work.admit_to_key(before, x, x.key)
  else
    x.state = State.Ready
  end
  work.save(before, x)
  work.free(before, x)
end

function work.free(before, after)
  local key = before.key
  if key and (before.holds_key and not (after.holds_key and after.key == key)
    or before.ordered and before.state == State.Blocked and after.state ~= State.Blocked)
  then
    work.rebalance_some(key)
  end
end

function work.admit_to_key(before, x, key)
  local base = work.key_limit(key)
  local others = minus(rows.holders(key), before.holds_key and 1 or 0)
  local is_open = work.is_open(x.kind)
  x.holds_key = x.holds_key and is_open and others < base or nil
  if not x.holds_key then
    if is_open and others < work.limit_for(key, base, x) then
      local first = rows.first_in_line(key)
      x.holds_key = (not first or is_behind(first, x)) or nil
    end
    x.unserved = not is_open or nil
  end
  x.state = x.holds_key and State.Ready or State.Blocked
  work.save(before, x)
  if x.holds_key or x.unserved then
    work.free(before, x)
  else
    work.rebalance_some(key)
  end
end

function work.key_limit(key)
  local row = rows.key(key)
  return row and row.limit or work.queue.settings.key_limit
end

-- The key limit as it applies to `x`: an ordered task must be the only holder.
function work.limit_for(key, base, x)
  return base > 1 and (x.ordered or rows.has_ordered_holder(key)) and 1 or base
end

function work.rebalance_some(key)
  if not work.rebalance_key(key, { left = MAX_REBALANCED }) then
    local row = copy(rows.key(key) or { key = key })
    row.needs_rebalancing = true
    rows.put_key(row)
    work.change_queue().maintenance_due = true
  end
end

-- Makes the most urgent tasks the holders, up to the limit. Returns false if more is to be done.
function work.rebalance_key(key, budget)
  local base = work.key_limit(key)
  while budget.left > 0 do
    local held, last = rows.holders(key), rows.last_ready_holder(key)
    if last and held > base then
      work.withdraw_permit(last)
    else
      local first = rows.first_in_line(key)
      if not first then
        return true
      elseif not work.is_open(first.kind) then
        local unserved = copy_task(first)
        unserved.unserved = true
        work.save(first, unserved)
      else
        local limit = work.limit_for(key, base, first)
        if held >= limit then
          local gives_way = last and base > 0 and not (last.ordered and last.leased) and is_behind(last, first)
          -- While several holders run, a released key goes to no task until the limit is met.
          if not gives_way or held > limit then
            return true
          end
          work.withdraw_permit(last)
        end
        local ready = copy_task(first)
        ready.state, ready.holds_key, ready.not_before = State.Ready, true, math.min(first.not_before, work.now)
        work.save(first, ready)
      end
    end
    budget.left = budget.left - 1
  end
  return false
end

function work.withdraw_permit(x)
  local keyed = copy_task(x)
  keyed.state, keyed.holds_key = State.Blocked, nil
  work.save(x, keyed)
end
