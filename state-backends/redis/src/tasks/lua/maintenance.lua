-- The maintenance of a step, bounded by a budget (maintenance.rs).
-- luacheck: std lua51, read globals rows State Stop AttemptEnd limits copy copy_task plus minus display duration
-- luacheck: read globals MAINTENANCE_BUDGET hour_of, globals work, max line length 120

-- Returns true if more is to be done at once.
function work.run_maintenance(worker)
  local budget, is_done = { left = work.budget or MAINTENANCE_BUDGET }, true
  if work.runs_maintenance then
    is_done = work.fail_tasks_of_dead_workers(worker, budget) and work.end_overdue(budget)
      and work.rebalance_kinds(budget) and work.rebalance_keys(budget) and work.forget(budget)
    if work.queue.maintenance_due == is_done then
      work.change_queue().maintenance_due = not is_done
    end
  end
  local is_notified = work.notify_ends(budget)
  return not (is_done and is_notified)
end

function work.name_of(presence)
  return presence.label == '' and display(presence.worker) or presence.label
end

function work.fail_tasks_of_dead_workers(living, budget)
  for _, dead in ipairs(rows.ended_presences(work.lease_clock, false, budget.left)) do
    if dead.worker ~= living then
      local why = 'its worker (' .. work.name_of(dead) .. ') was not heard of for ' .. duration(dead.lease)
      for _, x in ipairs(rows.held_by(dead.worker, budget.left)) do
        budget.left = budget.left - 1
        work.worker_lost(x, why)
      end
      if budget.left == 0 then
        return false
      end
      budget.left = budget.left - 1
      dead.cleared, dead.busy = true, false
      rows.put_presence(dead.worker, dead)
    end
  end
  return budget.left > 0
end

function work.end_overdue(budget)
  for _, found in ipairs(rows.overdue(work.now, budget.left)) do
    budget.left = budget.left - 1
    -- The end of an earlier task may have admitted this one.
    local x = rows.task(found.id)
    if x and x.state == State.Leased then
      local after = copy_task(x)
      after.stop = Stop.Deadline
      work.save(x, after)
      work.notifies = true
    elseif x then
      work.finish(x, State.Failed, 'its deadline passed before it was started')
    end
  end
  return budget.left > 0
end

function work.rebalance_keys(budget)
  for _, row in ipairs(rows.keys_to_rebalance(budget.left)) do
    if not work.rebalance_key(row.key, budget) then
      return false
    elseif row.limit then
      local rebalanced = copy(row)
      rebalanced.needs_rebalancing = nil
      rows.put_key(rebalanced)
    else
      rows.remove_key(row.key)
    end
  end
  while work.queue.rebalance_after do
    -- The empty text precedes all keys.
    local after = work.queue.rebalance_after
    local key = rows.next_key(after ~= '' and after or nil)
    if not key then
      work.change_queue().rebalance_after = nil
      break
    end
    if budget.left == 0 or not work.rebalance_key(key, budget) then
      return false
    end
    budget.left = math.max(budget.left - 1, 0)
    work.change_queue().rebalance_after = key
  end
  return budget.left > 0
end

function work.notify_ends(budget)
  while budget.left > 0 do
    local some = rows.unnotified(budget.left)
    if #some == 0 then
      work.unnotified = false
      return true
    end
    for _, found in ipairs(some) do
      -- Tasks without downstreams count, too, so the loop ends whatever the rows contain.
      budget.left = math.max(budget.left - 1, 0)
      local x = rows.task(found.id)
      if x and x.state >= State.Done and not x.notified
        and (budget.left == 0 or not work.notify_downstreams(x, budget))
      then
        return false
      end
    end
  end
  return false
end

-- Fields of `keep`. A purged task keeps only its id.
local KEEP = { [State.Done] = 'done', [State.Failed] = 'failed', [State.Cancelled] = 'cancelled' }
local MOST = { [State.Done] = 'most_done', [State.Failed] = 'most_failed', [State.Cancelled] = 'most_cancelled' }

local function keep_of(keep, state)
  return math.max(keep[KEEP[state]] or 0, limits.KEEP_IDS)
end

local function number_in(state)
  local number = 0
  for _, counted in ipairs(rows.counts()) do
    number = number + (counted[2] == state and counted[3] or 0)
  end
  return number
end

function work.forget(budget)
  local keep = work.queue.settings.keep
  if work.hour_passed then
    local first_day = hour_of(minus(work.now, limits.KEEP_DAYS))
    rows.forget_times(hour_of(minus(work.now, limits.KEEP_TIMES)), first_day - first_day % 24)
  end
  for state = State.Done, State.Purged do
    local old = rows.ended(state, minus(work.now, keep_of(keep, state)), budget.left)
    local most = keep[MOST[state]]
    if most then
      local over = math.min(minus(number_in(state), most), budget.left)
      if over > #old then
        old = rows.ended(state, minus(work.now, limits.KEEP_IDS), over)
      end
    end
    for _, x in ipairs(old) do
      -- This and the later tasks only look old: the clock was stepped.
      if x.ended_lease_clock and plus(x.ended_lease_clock, limits.KEEP_IDS) > work.lease_clock then
        break
      end
      budget.left = budget.left - 1
      if not work.forget_task(x, budget) or budget.left == 0 then
        return false
      end
    end
  end
  for _, dead in ipairs(rows.ended_presences(minus(work.lease_clock, limits.KEEP_PRESENCE), true, budget.left)) do
    budget.left = budget.left - 1
    rows.remove_presence(dead.worker)
  end
  work.forget_events()
  return budget.left > 0
end

-- Downstreams go first, since they may need the result again.
function work.forget_task(x, budget)
  if #rows.edges_from(x.id, nil, 1) > 0 then
    local kept = copy_task(x)
    kept.retained = true
    work.save(x, kept)
    return true
  end
  if x.has_edges then
    for _, edge in ipairs(rows.edges_to(x.id, nil, nil, budget.left)) do
      budget.left = budget.left - 1
      work.remove_edge(edge)
    end
    if budget.left == 0 then
      return false
    end
  end
  rows.count(x.kind, x.state, -1)
  rows.remove(x)
  return true
end
