-- Counts stored tasks again, and removes index entries of tasks whose rows were removed by hand
-- (change.rs). Reads in pages, and keeps none.
-- luacheck: std lua51, read globals redis behind task_of_row sort State ROWS TASKS INDEX WIDTHS
-- luacheck: read globals DONE LEASED READY_KIND LEASED_KIND
-- luacheck: globals tables rows work, max line length 120

local MAX_DROPPED = 10000
local SCAN_SIZE = 200
local TASK_LETTERS = { 'n', 'r', 'l', 'a', 's', 't', 'h', 'o', 'R', 'H', 'L', 'q', 'k', 'p', 'u', 'e', 'x', 'd', 'I' }

-- `with` gets the entries with their groups, and returns `true` to stop.
local function each_entry(letter, with)
  local from, width = '[' .. letter, WIDTHS[letter]
  while true do
    local names = redis.call('ZRANGEBYLEX', INDEX, from, '(' .. behind(letter), 'LIMIT', '0', SCAN_SIZE)
    if #names == 0 then
      return
    end
    from = '(' .. names[#names]
    local entries = {}
    if width then
      local fields = {}
      for n, name in ipairs(names) do
        fields[n] = '#' .. name
      end
      for n, text in ipairs(redis.call('HMGET', ROWS, unpack(fields))) do
        local group = string.sub(names[n], 1, -width - 1)
        for at = 1, #(text or ''), width do
          entries[#entries + 1] = { group, string.sub(text, at, at + width - 1) }
        end
      end
    else
      for n, name in ipairs(names) do
        entries[n] = { letter, name }
      end
    end
    if with(entries) then
      return
    end
  end
end

local function rows_of(entries)
  local found = {}
  for first = 1, #entries, 1000 do
    local ids, last = {}, math.min(first + 999, #entries)
    for n = first, last do
      ids[#ids + 1] = string.sub(entries[n][2], -16)
    end
    for n, row in ipairs(redis.call('HMGET', TASKS, unpack(ids))) do
      found[first + n - 1] = row
    end
  end
  return found
end

local function kind_and_state(id, row)
  local form = string.byte(row)
  if form > DONE then
    local x = task_of_row(id, row)
    return x.kind, x.state
  end
  local at, state = READY_KIND, State.Ready
  if form == LEASED then
    at, state = LEASED_KIND, State.Leased
  elseif form == DONE then
    local size = string.byte(row, 16) * 256 + string.byte(row, 17)
    at, state = LEASED_KIND + 16 + size, State.Done
  end
  return string.sub(row, at + 1, at + string.byte(row, at)), state
end

-- Returns counts by kind and state, and whether a listed task is missing.
local function stored()
  local counts, is_lacking = {}, false
  each_entry('I', function(entries)
    for n, row in ipairs(rows_of(entries)) do
      if row then
        local kind, state = kind_and_state(string.sub(entries[n][2], -16), row)
        local of_kind = counts[kind] or {}
        counts[kind] = of_kind
        of_kind[state] = (of_kind[state] or 0) + 1
      else
        is_lacking = true
      end
    end
  end)
  return counts, is_lacking
end

-- Each with kind, state, stored and right number.
function rows.miscounted(counts)
  local kinds, known, found = {}, {}, {}
  for _, entry in ipairs(tables.find_entries('C', nil, nil, 1000000000)) do
    known[string.sub(entry, 2)] = true
  end
  for kind in pairs(counts) do
    known[kind] = true
  end
  for kind in pairs(known) do
    kinds[#kinds + 1] = kind
  end
  sort(kinds)
  for _, kind in ipairs(kinds) do
    local row, of_kind = tables.get('count:' .. kind) or {}, counts[kind] or {}
    for state = State.Added, State.Purged do
      local before, now = row[state + 1] or 0, of_kind[state] or 0
      if before ~= now then
        found[#found + 1] = { kind, state, before, now }
      end
    end
  end
  return found
end

-- The list of all ids comes last, since it shows that some are missing.
local function drop()
  local dropped = 0
  for _, letter in ipairs(TASK_LETTERS) do
    each_entry(letter, function(entries)
      local found = rows_of(entries)
      for n, entry in ipairs(entries) do
        if dropped < MAX_DROPPED and not found[n] then
          tables.remove_entry(entry[1], entry[2])
          dropped = dropped + 1
        end
      end
      return dropped == MAX_DROPPED
    end)
  end
  return dropped
end

function work.recount()
  local counts, is_lacking = stored()
  local corrected = rows.miscounted(counts)
  for _, one in ipairs(corrected) do
    rows.count(one[1], one[2], one[4] - one[3])
  end
  local dropped = is_lacking and drop() or 0
  if #corrected + dropped > 0 then
    work.change_queue().rebalance_after = ''
    work.request_maintenance()
  end
  return { corrected = corrected, dropped = dropped, more = dropped == MAX_DROPPED }
end
