-- The end of a run (ending.rs).
-- luacheck: std lua51, read globals rows State Stop AttemptEnd limits copy copy_task plus wait_of
-- luacheck: read globals Occurrence
-- luacheck: read globals policy_over variant is_same, globals work, max line length 120, ignore 211

local CANCELLED = 'it was cancelled'
local CANCELLED_LATE = 'it was cancelled; its run finished after it was asked to stop'
local OVERDUE = 'its deadline has passed'

function work.policy(x)
  local settings = work.queue.settings
  local of_kind = settings.kinds and settings.kinds[x.kind]
  return policy_over(x.policy, policy_over(of_kind, settings.policy))
end

local function is_leased_to(x, worker, token)
  return x.state == State.Leased and x.worker == worker and is_same(x.token, token)
end

local function truncated(text)
  if #text <= limits.MAX_ERROR then
    return text
  end
  local fits = limits.MAX_ERROR
  while fits > 0 and math.floor(string.byte(text, fits + 1) / 64) == 2 do
    fits = fits - 1
  end
  return string.sub(text, 1, fits) .. '…'
end

local function remember(x, how, now)
  local history = {}
  local before = x.history or {}
  for n = #before >= limits.MAX_HISTORY and 2 or 1, #before do
    history[#history + 1] = before[n]
  end
  history[#history + 1] = {
    token = x.token, worker = x.worker, leased = x.leased, ended = now, ['end'] = how,
    error = (how == AttemptEnd.error or how == AttemptEnd.retry or how == AttemptEnd.died) and x.error or nil,
  }
  x.history = history
end

-- Without `how` the run had not begun.
local function end_cancelled(x, how, why)
  local after = copy_task(x)
  after.error = why ~= '' and truncated(why) or nil
  if how then
    remember(after, how, work.now)
  end
  after.error = how == AttemptEnd.done and CANCELLED_LATE or CANCELLED
  work.end_as(x, after, State.Cancelled)
end

local STOPPED = { error = 'error', failed = 'error', retry = 'retry', released = 'stopped', unable = 'released' }

-- `completion`: id, token and outcome. Returns 'obeyed', 'refused' or 'lost'.
function work.complete(worker, completion)
  local id, token, result, why = completion[1], completion[2], completion[3].done, nil
  if result and not work.is_followed and work.complete_plain(worker, id, token, result) then
    return 'obeyed'
  end
  local outcome, what = variant(completion[3])
  if outcome == 'retry' then
    what, why = what[1], what[2]
  end
  local x = rows.task(id)
  if not x or not is_leased_to(x, worker, token) then
    return 'lost'
  end
  if outcome ~= 'released' and outcome ~= 'unable' and outcome ~= 'exchanged' then
    work.has_run(x.kind, x.leased)
  end
  if outcome == 'done' then
    local most = work.queue.settings.max_payload
    if #what > most then
      local text = string.format('the result has %d bytes: this queue stores at most %.0f', #what, most)
      work.run_failed(x, text, AttemptEnd.error)
      return 'refused'
    end
    if what ~= 'null' then
      rows.put_result(id, what)
    end
    -- A deadline applies to the start: a result that arrives later counts.
    if x.stop == Stop.Cancel then
      end_cancelled(x, AttemptEnd.done, '')
    else
      work.finish(x, State.Done)
    end
    return 'obeyed'
  end
  if x.stop == Stop.Cancel then
    local how = STOPPED[outcome]
    local message = outcome == 'retry' and why or (outcome == 'error' or outcome == 'failed') and what or ''
    end_cancelled(x, how and AttemptEnd[how], message)
  elseif x.stop == Stop.Deadline then
    work.finish(x, State.Failed, OVERDUE)
  elseif outcome == 'failed' then
    local after = copy_task(x)
    after.failures, after.error = x.failures + 1, truncated(what)
    work.end_as(x, after, State.Failed)
  elseif outcome == 'error' then
    work.run_failed(x, what, AttemptEnd.error)
  elseif outcome == 'retry' then
    work.retry_later(x, what, why)
  elseif outcome == 'exchanged' then
    work.again(x, copy_task(x))
  elseif x.stop == Stop.Release then
    local after = copy_task(x)
    after.returns = nil
    work.again(x, after)
  else
    work.give_back(x, AttemptEnd.released, what)
  end
  return 'obeyed'
end

-- Returns false if the task was not asked to stop, or only to be given back.
local function end_stopped(x, how, why)
  if x.stop == Stop.Cancel then
    end_cancelled(x, how, why)
  elseif x.stop == Stop.Deadline then
    work.finish(x, State.Failed, OVERDUE)
  else
    return false
  end
  return true
end

function work.run_failed(x, why, how)
  if end_stopped(x, how, why) then
    return
  end
  local policy, failures = work.policy(x), x.failures + 1
  local wait = wait_of(policy, failures, x.id, x.token[2])
  local after = copy_task(x)
  after.failures, after.returns, after.error = failures, nil, truncated(why)
  if failures >= policy.max_attempts then
    return work.end_as(x, after, State.Failed)
  end
  -- The task of a dead worker has already waited for the end of its lease.
  after.not_before = how == AttemptEnd.died and math.min(after.not_before, work.now) or plus(work.now, wait)
  remember(after, how, work.now)
  work.count_occurrence(x.kind, Occurrence.Retried, 1)
  work.again(x, after)
end

-- A failure, unless the run may not have begun.
function work.worker_lost(x, why)
  if x.prefetched then
    work.give_back(x, AttemptEnd.lost)
  else
    work.run_failed(x, why, AttemptEnd.died)
  end
end

function work.retry_later(x, wait, why)
  local retries, after = x.retries + 1, copy_task(x)
  after.retries, after.returns, after.not_before = retries, nil, plus(work.now, wait)
  if why ~= '' then
    after.error = truncated(why)
  end
  if retries > work.policy(x).max_retries then
    after.error = string.format('it asked %d times to be run again: ', retries) .. truncated(why)
    return work.end_as(x, after, State.Failed)
  end
  remember(after, AttemptEnd.retry, work.now)
  work.count_occurrence(x.kind, Occurrence.Retried, 1)
  work.again(x, after)
end

-- The task was not run, or its lease never arrived.
function work.give_back(x, how, why)
  if end_stopped(x, how, '') then
    return
  end
  local after = copy_task(x)
  after.returns = x.returns + 1
  if why then
    after.error = truncated(why)
  end
  if after.returns >= limits.MAX_RETURNS then
    local over = after.returns - limits.MAX_RETURNS + 1
    after.not_before = plus(work.now, wait_of(work.policy(x), over, x.id, x.token[2]))
    local times = string.format('it was given back %d times in a row', after.returns)
    after.error = why and truncated(times .. ': ' .. why) or times
  end
  remember(after, how, work.now)
  if why then
    after.history[#after.history].error = truncated(why)
  end
  work.again(x, after)
end

function work.again(before, x)
  x.stop, x.progress, x.holds_key = nil, nil, x.holds_key and x.ordered or nil
  -- A gate once passed stays passed when the clock steps back.
  if x.not_before == before.not_before then
    x.not_before = math.min(x.not_before, work.now)
  end
  work.admit(before, x)
end

-- `end` in Rust.
function work.finish(x, state, why)
  local after = copy_task(x)
  if why then
    after.error = truncated(why)
  elseif state == State.Done then
    after.error = nil
  end
  work.end_as(x, after, state)
end

function work.end_as(before, x, state)
  x.notified = #rows.unnotified_from(x.id, x.generation, 1) == 0 or nil
  work.unnotified = work.unnotified or not x.notified
  work.end_notified(before, x, state)
end

-- Requires that the downstreams need no notification.
function work.end_notified(before, x, state)
  x.state, x.ended, x.ended_lease_clock = state, work.now, work.lease_clock
  x.holds_name, x.holds_key, x.unserved, x.stop = nil, nil, nil, nil
  work.count_end(x.kind, state)
  work.save(before, x)
  work.release_kept_instant(x)
  work.free(before, x)
end
