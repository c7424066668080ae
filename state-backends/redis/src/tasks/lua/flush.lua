-- Sends the collected writes.
-- luacheck: std lua51, read globals redis cmsgpack ROWS TASKS BODIES EDGES
-- luacheck: read globals INDEX INLINE FILLER MAX_ARGUMENTS WIDTHS UNCOUNTED
-- luacheck: read globals copy pack_task, globals tables, max line length 120, ignore 211

local function send(verb, key, words)
  for first = 1, #words, MAX_ARGUMENTS do
    redis.call(verb, key, unpack(words, first, math.min(first + MAX_ARGUMENTS - 1, #words)))
  end
end

local function send_bodies()
  local bodies, no_bodies = {}, {}
  for name, was_stored in pairs(tables.bodies_written) do
    local id = string.sub(name, 2)
    local body = (string.byte(name) == 112 and tables.payloads or tables.results)[id]
    if body and #body > INLINE then
      bodies[#bodies + 1] = name
      bodies[#bodies + 1] = body
    elseif was_stored then
      no_bodies[#no_bodies + 1] = name
    end
  end
  for id, was_stored in pairs(tables.logs_written) do
    if #tables.logs[id] > 0 then
      bodies[#bodies + 1] = 'l' .. id
      bodies[#bodies + 1] = cmsgpack.pack(tables.logs[id])
    elseif was_stored then
      no_bodies[#no_bodies + 1] = 'l' .. id
    end
  end
  send('HSET', BODIES, bodies)
  send('HDEL', BODIES, no_bodies)
end

local function send_edges()
  local edges, no_edges = {}, {}
  for name in pairs(tables.edges_written) do
    local edge = tables.edges[name]
    if edge then
      edges[#edges + 1] = name
      local up, down = edge.up, edge.down
      edge.up, edge.down = nil, nil
      edges[#edges + 1] = cmsgpack.pack(edge)
      edge.up, edge.down = up, down
    else
      no_edges[#no_edges + 1] = name
    end
  end
  send('HSET', EDGES, edges)
  send('HDEL', EDGES, no_edges)
end

local function count_new()
  local entries = tables.get('entries')
  local counts = not entries and {}
  for group, some in pairs(tables.pending) do
    local letter, more = string.sub(group, 1, 1), some.new_count - some.gone_count
    if more ~= 0 and not UNCOUNTED[letter] then
      counts = counts or copy(entries)
      counts[letter] = (counts[letter] or 0) + more
    end
  end
  if counts then
    tables.set('entries', counts)
  end
end

function tables.flush()
  tables.index_tasks()
  count_new()
  local rows, no_rows, tasks, no_tasks, entries, no_entries = {}, {}, {}, {}, {}, {}
  for field in pairs(tables.small_written) do
    local row = tables.small[field]
    if row then
      rows[#rows + 1] = field
      rows[#rows + 1] = cmsgpack.pack(row)
    else
      no_rows[#no_rows + 1] = field
    end
  end
  for id in pairs(tables.tasks_written) do
    local x = tables.tasks[id]
    tables.set_plain(id, x and pack_task(id, x))
  end
  local words, stored = 0, tables.rows
  for id in pairs(tables.rows_written) do
    local row = stored[id]
    if row then
      tasks[words + 1], tasks[words + 2] = id, row
      words = words + 2
    else
      no_tasks[#no_tasks + 1] = id
    end
  end
  for group, some in pairs(tables.pending) do
    if WIDTHS[string.sub(group, 1, 1)] then
      tables.change_pages(group, some, rows, no_rows, entries, no_entries)
    else
      for entry in pairs(some.new) do
        entries[#entries + 1] = '0'
        entries[#entries + 1] = entry
      end
      for entry in pairs(some.gone) do
        no_entries[#no_entries + 1] = entry
      end
    end
  end
  -- A key of another type is an error before anything is written.
  if not tables.is_read[INDEX] and #entries + #no_entries > 0 then
    redis.call('ZCARD', INDEX)
  end
  if not tables.is_read[TASKS] and #tasks + #no_tasks > 0 then
    redis.call('HLEN', TASKS)
  end
  local has_edges = next(tables.edges_written)
  if has_edges then
    redis.call('HLEN', EDGES)
  end
  if next(tables.bodies_written) or next(tables.logs_written) then
    redis.call('HLEN', BODIES)
    send_bodies()
  end
  if has_edges then
    send_edges()
  end
  if tables.filler then
    tasks[#tasks + 1] = ''
    tasks[#tasks + 1] = FILLER
    entries[#entries + 1] = '0'
    entries[#entries + 1] = FILLER
  end
  send('HSET', ROWS, rows)
  send('HSET', TASKS, tasks)
  send('ZADD', INDEX, entries)
  send('ZREM', INDEX, no_entries)
  send('HDEL', TASKS, no_tasks)
  send('HDEL', ROWS, no_rows)
  -- If the user may not publish, the change is made all the same.
  if tables.notifies then
    redis.pcall('PUBLISH', ROWS .. ':changes', '')
  end
end
