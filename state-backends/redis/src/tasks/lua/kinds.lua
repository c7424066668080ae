-- Kinds, and whether their tasks may hold keys (kinds.rs).
-- luacheck: std lua51, read globals rows tables State copy copy_task plus, globals work, max line length 120

function work.is_open(kind)
  local row = rows.kind(kind)
  return row and row.open
end

-- Returns the served kinds that are not paused.
function work.serve(step)
  local till, soon = plus(work.lease_clock, step.lease), plus(work.lease_clock, math.floor(step.lease / 4) * 3)
  local served = {}
  for _, kind in ipairs(step.kinds) do
    local row = rows.kind(kind) or { kind = kind, served_until = 0 }
    local opens = not row.open and not row.paused
    if opens or row.served_until < soon then
      row = copy(row)
      row.served_until = math.max(row.served_until, till)
      row.open, row.needs_rebalancing = row.open or opens or nil, row.needs_rebalancing or opens or nil
      work.runs_maintenance = work.runs_maintenance or opens
      rows.put_kind(row)
    end
    if not row.paused then
      served[#served + 1] = kind
    end
  end
  return served
end

-- Closes unserved kinds, and moves tasks in or out of the order of keys. Returns false if more is
-- to be done.
function work.rebalance_kinds(budget)
  for _, row in ipairs(rows.kinds()) do
    if row.open and (row.paused or row.served_until <= work.lease_clock) then
      row = copy(row)
      row.open, row.needs_rebalancing = nil, true
      rows.put_kind(row)
    end
    if row.needs_rebalancing then
      local some = row.open and rows.unserved(row.kind, budget.left) or rows.ready_holders(row.kind, budget.left)
      for _, found in ipairs(some) do
        budget.left = budget.left - 1
        local x = rows.task(found.id)
        -- A task that gave way to another one has already been moved.
        if x and (x.unserved or x.state == State.Ready) then
          if row.open then
            work.admit(x, copy_task(x))
          else
            local unserved = copy_task(x)
            unserved.state, unserved.holds_key, unserved.unserved = State.Blocked, nil, true
            work.save(x, unserved)
            work.free(x, unserved)
          end
        end
      end
      if budget.left == 0 then
        return false
      end
      row = copy(row)
      row.needs_rebalancing = nil
      rows.put_kind(row)
    end
  end
  return true
end
