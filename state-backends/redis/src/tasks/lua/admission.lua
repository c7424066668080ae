-- Admission through the gates (admission.rs).
-- luacheck: std lua51, read globals rows copy_task
-- luacheck: read globals MAINTENANCE_BUDGET MAINTENANCE_INTERVAL_US, globals work, max line length 120

-- While a worker holds tasks, a step admits this part of the budget, or as many as are lacking.
local ADMISSION_DIVISOR = 8
-- In µs, unless the step ran the maintenance.
local POLL_INTERVAL_US = 1000000

local function served_ones(found, kinds)
  local served = {}
  for _, x in ipairs(found) do
    if kinds[x.kind] then
      served[#served + 1] = x
    end
  end
  return served
end

-- Admits up to `most` tasks. Returns whether it admitted any, and whether some are left.
local function admit_page(most, kinds)
  local due, added = rows.scheduled(work.now, most), rows.added(most)
  local left, found = math.max(#due, #added) >= most, #due + #added
  if kinds then
    due, added = served_ones(due, kinds), served_ones(added, kinds)
  end
  local of_added = math.min(#added, math.max(math.ceil(most / 2), most - #due))
  local of_due = math.min(#due, most - of_added)
  left = left or of_due + of_added < found
  local some = of_due + of_added > 0
  for n = 1, of_due do
    work.admit(due[n], copy_task(due[n]))
  end
  -- Each upstream of an added task counts as a task.
  local budget = { left = most }
  for n = 1, of_added do
    local x = added[n]
    if budget.left == 0 then
      return some, true
    end
    budget.left = budget.left - 1
    if not x.has_edges then
      work.admit(x, copy_task(x))
    elseif not work.check_upstreams(x, budget) then
      return some, true
    end
  end
  return some, left
end

function work.admit_some(step, served, lack)
  local is_short = lack > 0
  local beats = step.want == 0 and #step.complete == 0
  if not (is_short or beats or work.runs_maintenance) then
    return { is_short = is_short }
  end
  local is_busy = rows.shortest_busy_lease(work.lease_clock) ~= nil
  local whole = not is_busy and (is_short or beats)
  local budget = work.budget or MAINTENANCE_BUDGET
  local most = whole and budget or math.max(math.floor(budget / ADMISSION_DIVISOR), 2)
  local only
  if is_busy and is_short and not work.runs_maintenance then
    only = {}
    most = math.max(math.min(lack, budget), most)
    for _, kind in ipairs(served) do
      only[kind] = true
    end
  end
  local some, left = admit_page(most, only)
  return { some = some, left = left, has_checked = true, freely = whole or beats, is_short = is_short }
end

function work.has_more(admission, reply)
  return admission.left and (admission.freely or admission.is_short and #reply.leased > 0) or false
end

function work.next_poll(admission)
  local is_left = admission.left
  if not admission.has_checked then
    is_left = #rows.added(1) > 0
  end
  return is_left and work.poll_interval() or nil
end

function work.poll_interval()
  return work.runs_maintenance and MAINTENANCE_INTERVAL_US or POLL_INTERVAL_US
end
