-- Logs: lines of runs, and notes (run_log.rs, log.rs). A line is its time, token, number and text.
-- luacheck: std lua51, read globals rows tables State limits minus refuse is_same NO_TOKEN, globals work
-- luacheck: max line length 120

local function last_number(log, token)
  local last = 0
  for _, line in ipairs(log) do
    if is_same(line[2], token) and line[3] > last then
      last = line[3]
    end
  end
  return last
end

-- The oldest lines go first.
local function bounded(log, token)
  local over, bytes = is_same(token, NO_TOKEN) and -limits.MAX_NOTES or -limits.MAX_LOG_LINES, 0
  for _, line in ipairs(log) do
    over = over + (is_same(line[2], token) and 1 or 0)
  end
  local kept = {}
  for _, line in ipairs(log) do
    if over > 0 and is_same(line[2], token) then
      over = over - 1
    else
      kept[#kept + 1] = line
      bytes = bytes + #line[4] + limits.LOG_LINE_BYTES
    end
  end
  local all = {}
  for _, line in ipairs(kept) do
    if bytes > limits.MAX_LOG and not is_same(line[2], NO_TOKEN) then
      bytes = bytes - #line[4] - limits.LOG_LINE_BYTES
    else
      all[#all + 1] = line
    end
  end
  return all
end

local function store(x, log, token)
  rows.put_log(x.id, bounded(log, token))
  if work.is_followed then
    rows.put_event({
      at = work.now, task = x.id, kind = x.kind, from = x.state, to = x.state, attempt = x.token[2],
    })
  end
end

-- Accepts lines after the run's end, until the task is leased again or purged.
function work.write_log(worker, reported)
  local x, token = rows.task(reported.id), reported.token
  if not x or x.worker ~= worker or not is_same(x.token, token) or x.state == State.Purged then
    return
  end
  local log = rows.log(x.id)
  local last, has_new = last_number(log, token), false
  for _, line in ipairs(reported.lines) do
    if line.number > last then
      log[#log + 1] = { minus(work.now, line.age), token, line.number, line.text }
      has_new = true
    end
  end
  if has_new then
    store(x, log, token)
  end
end

function work.add_note(id, text)
  local x = rows.task(id)
  if not x or x.state == State.Purged then
    refuse('no_task', id)
  end
  local log = rows.log(id)
  log[#log + 1] = { work.now, NO_TOKEN, math.min(last_number(log, NO_TOKEN) + 1, limits.MAX_ATTEMPT), text }
  store(x, log, NO_TOKEN)
end
