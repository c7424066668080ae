-- Logs of tasks: lines of runs, and notes (run_log.rs, log.rs). A line is a list of the time, the two numbers
-- of the token, its number and its text. A note has the token 0, 0.
-- luacheck: std lua51, read globals rows tables State limits minus refuse, globals work, max line length 120

local function is_of(line, incarnation, attempt)
  return line[2] == incarnation and line[3] == attempt
end

local function last_number(log, incarnation, attempt)
  local last = 0
  for _, line in ipairs(log) do
    if is_of(line, incarnation, attempt) and line[4] > last then
      last = line[4]
    end
  end
  return last
end

-- Drops the lines beyond the bounds, the oldest first.
local function bounded(log, incarnation, attempt)
  local is_note = incarnation == 0 and attempt == 0
  local over, bytes = is_note and -limits.MAX_NOTES or -limits.MAX_LOG_LINES, 0
  for _, line in ipairs(log) do
    over = over + (is_of(line, incarnation, attempt) and 1 or 0)
  end
  local kept = {}
  for _, line in ipairs(log) do
    if over > 0 and is_of(line, incarnation, attempt) then
      over = over - 1
    else
      kept[#kept + 1] = line
      bytes = bytes + #line[5] + limits.LOG_LINE_BYTES
    end
  end
  local all = {}
  for _, line in ipairs(kept) do
    if bytes > limits.MAX_LOG and not is_of(line, 0, 0) then
      bytes = bytes - #line[5] - limits.LOG_LINE_BYTES
    else
      all[#all + 1] = line
    end
  end
  return all
end

local function store(x, log, incarnation, attempt)
  rows.put_log(x.id, bounded(log, incarnation, attempt))
  if work.is_followed then
    rows.put_event({
      at = work.now, id = x.id, kind = x.kind, from = x.state, to = x.state, attempt = x.attempt,
    })
  end
end

-- Stores the lines of a run: its id and token, followed by the number, the age and the text of each.
-- Lines count also after the end of the run, until the task is leased again or purged.
function work.write_log(worker, reported)
  local x, incarnation, attempt = rows.task(reported[1]), reported[2], reported[3]
  if not x or x.worker ~= worker or x.incarnation ~= incarnation or x.attempt ~= attempt
    or x.state == State.Purged
  then
    return
  end
  local log = rows.log(x.id)
  local last, has_new = last_number(log, incarnation, attempt), false
  for n = 4, #reported, 3 do
    if reported[n] > last then
      log[#log + 1] = { minus(work.now, reported[n + 1]), incarnation, attempt, reported[n], reported[n + 2] }
      has_new = true
    end
  end
  if has_new then
    store(x, log, incarnation, attempt)
  end
end

function work.add_note(id, text)
  local x = rows.task(id)
  if not x or x.state == State.Purged then
    refuse('linked', id)
  end
  local log = rows.log(id)
  log[#log + 1] = { work.now, 0, 0, math.min(last_number(log, 0, 0) + 1, limits.MAX_ATTEMPT), text }
  store(x, log, 0, 0)
end
