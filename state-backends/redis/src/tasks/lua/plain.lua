-- The fast path of plain tasks without unpacking (forms.lua), if there is no follower. Its results
-- are those of the rules.
-- luacheck: std lua51, read globals rows tables struct State Counted READY LEASED DONE INLINE static number
-- luacheck: read globals Occurrence
-- luacheck: read globals rank stored_of
-- luacheck: read globals READY_KIND LEASED_KIND, globals work, max line length 120, ignore 211

function work.add_plain(id, kind, payload, age, position)
  if work.is_added(id, payload, age) then
    return 'a', id
  elseif #payload > INLINE or work.is_followed then
    local new = { id = id, kind = kind, payload = payload, weight = 1, not_before = { after = 0 } }
    return work.add_one(new, age, position)
  end
  local added = work.adding_time()
  tables.set_plain(id, '\1' .. static(added, position, kind, payload))
  tables.add_entry('I', number(added) .. id)
  tables.add_entry('r' .. kind .. '\0', '\128' .. number(added) .. rank(added, position) .. id)
  work.count_plain('added', kind)
  return 'n', id
end

-- Counters that change together.
local COUNTED = {
  added = { { State.Ready, 1 }, { Counted.EverAdded, 1 } },
  leased = { { State.Ready, -1 }, { State.Leased, 1 }, { Counted.EverLeased, 1 } },
  ended = { { State.Leased, -1 }, { State.Done, 1 }, { Counted.EverDone, 1 } },
}

local OCCURRENCES = { added = Occurrence.Added, ended = Occurrence.Done }

function work.count_plain(what, kind)
  local counted = work.plain[what]
  if not counted then
    counted = {}
    work.plain[what] = counted
  end
  counted[kind] = (counted[kind] or 0) + 1
end

-- Required before counters are read.
function work.flush_plain_counts(what)
  local kinds = work.plain[what]
  if kinds then
    for kind, count in pairs(kinds) do
      for _, counted in ipairs(COUNTED[what]) do
        rows.count(kind, counted[1], counted[2] * count)
      end
      if OCCURRENCES[what] then
        work.count_occurrence(kind, OCCURRENCES[what], count)
      end
    end
    work.plain[what] = nil
  end
end

local function plain_kind(row)
  return string.sub(row, READY_KIND + 1, READY_KIND + string.byte(row, READY_KIND))
end

-- `entry` is its ready entry.
function work.lease_plain(step, id, row, entry, prefetched)
  local run = work.plain_run
  if not run then
    run = '\2' .. step.worker .. struct.pack('>I7I4I7', work.incarnation_after(0, step), 1, work.now)
    work.plain_run = run
  end
  local kind = plain_kind(row)
  tables.set_plain(id, run .. (prefetched and '\1' or '\0') .. string.sub(row, 2))
  tables.remove_entry('r' .. kind .. '\0', entry)
  tables.add_entry('l' .. step.worker .. '\0', id)
  work.count_plain('leased', kind)
  work.has_waited(kind, (struct.unpack('>I7', row, 2)))
  work.more_leased = work.more_leased + 1
end

-- Returns false if the task is not plain, not of this run, or does not end plainly.
function work.complete_plain(worker, id, token, result)
  local most = work.plain_most
  if not most then
    -- If the queue has any edge, a task may wait for this end.
    most = stored_of('F') == 0 and math.min(INLINE, work.queue.settings.max_payload) or -1
    work.plain_most, work.plain_ended = most, number(work.now)
    work.plain_end = struct.pack('>BI7I7', DONE, work.now, work.lease_clock)
  end
  local row = #result <= most and tables.plain(id, LEASED)
  if not row then
    return false
  end
  local of_worker, incarnation, attempt, leased = struct.unpack('>c16I7I4I7', row, 2)
  if of_worker ~= worker or incarnation ~= token[1] or attempt ~= token[2] then
    return false
  end
  result = result ~= 'null' and result or ''
  tables.set_plain(id, work.plain_end .. struct.pack('>I2', #result) .. result .. string.sub(row, 2))
  tables.remove_entry('l' .. worker .. '\0', id)
  tables.add_entry('e\6', work.plain_ended .. id)
  local kind = string.sub(row, LEASED_KIND + 1, LEASED_KIND + string.byte(row, LEASED_KIND))
  work.count_plain('ended', kind)
  work.has_run(kind, leased)
  work.more_leased = work.more_leased - 1
  return true
end
