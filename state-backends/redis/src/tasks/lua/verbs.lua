-- Verbs on selected tasks, in bounded commands up to a watermark (verbs.rs).
-- luacheck: std lua51, read globals rows State STATES variant is_same
-- luacheck: read globals Stop EdgeState AttemptEnd limits is_ended copy copy_task plus remember
-- luacheck: globals work, max line length 120

-- For commands that check the downstreams of each.
local MAX_TOUCHED_WITH_EDGES = 20

local function acts_on(verb, state)
  if verb == 'cancel' or verb == 'priority' then
    return not is_ended(state)
  elseif verb == 'delay' or verb == 'move' or verb == 'link' then
    return not is_ended(state) and state ~= State.Leased
  elseif verb == 'unlink' then
    return state == State.Added or state == State.Waiting or state == State.Failed or state == State.Cancelled
  elseif verb == 'tag' or verb == 'untag' then
    return state ~= State.Purged
  elseif verb == 'release' then
    return state == State.Scheduled or state == State.Leased
  end
  return is_ended(state) and state ~= State.Purged
end

local function has_tag(x, tag)
  for _, one in ipairs(x.tags or {}) do
    if one == tag then
      return true
    end
  end
  return false
end

local function without(tags, tag)
  local others = {}
  for _, one in ipairs(tags or {}) do
    if one ~= tag then
      others[#others + 1] = one
    end
  end
  return #others > 0 and others or nil
end

local MOVED_ERROR = 'it was moved to '

-- A task that has left and not arrived can be taken back.
local function has_arrived(x)
  return x.state == State.Cancelled and string.sub(x.error or '', 1, #MOVED_ERROR) == MOVED_ERROR
    and not has_tag(x, 'moving')
end

local function is_done_to(verb, of, x)
  return verb == 'priority' and x.priority == of or verb == 'tag' and has_tag(x, of)
    or verb == 'untag' and not has_tag(x, of) or verb == 'link' and rows.edge(of[1], x.id) ~= nil
    or verb == 'unlink' and not rows.edge(of, x.id) or verb == 'retry' and has_arrived(x)
end

-- Whether a live task waits for this one, or has its result.
local function is_needed(up)
  for _, edge in ipairs(rows.edges_from(up, nil, limits.MAX_EDGES)) do
    local down = rows.task(edge.down)
    if down and not is_ended(down.state) then
      return true
    end
  end
  return false
end

-- Returns false if the edges are more than a command may check.
local function remove_edges_of(x)
  for _, edge in ipairs(rows.edges_from(x.id, nil, limits.MAX_EDGES)) do
    rows.remove_edge(edge)
  end
  if x.has_edges then
    for _, edge in ipairs(rows.edges_to(x.id, nil, nil, limits.MAX_EDGES)) do
      work.remove_edge(edge)
    end
  end
  return #rows.edges_from(x.id, nil, 1) == 0
end

-- The task is left unchanged. `to` is the upstream of a new edge.
local function is_kept(verb, x, edges, to)
  -- At its destination a task of a key would run concurrently with the one that runs here.
  return verb == 'move' and x.key and rows.leased_of_key(x.key) > 0
    or verb == 'purge' and is_needed(x.id)
    or verb == 'tag' and #(x.tags or {}) >= limits.MAX_TAGS or verb == 'link' and not work.may_wait_for(x, edges, to)
end

function work.change_tasks(change)
  local watermark, verb, of = change.watermark or plus(work.adding_time(), 1), variant(change.verb)
  local to = verb == 'link' and work.linked_to(of[1])
  local selector = change.selector
  selector.added_before = math.min(selector.added_before or watermark, watermark)
  local states = {}
  for state = State.Added, State.Purged do
    local is_named = #selector.states == 0
    for _, named in ipairs(selector.states) do
      is_named = is_named or STATES[named] == state
    end
    if is_named and acts_on(verb, state) then
      states[#states + 1] = state
    end
  end
  selector.states = states
  local touched = { ids = {}, kept = {}, asked = {}, taken = {}, watermark = watermark }
  if #states == 0 then
    return touched
  end
  -- Each task may have many downstreams to check.
  local limit = to and to.has_edges and math.min(change.limit, MAX_TOUCHED_WITH_EDGES) or change.limit
  local found
  found, touched.next = work.select(selector, change.after, limit)
  local budget = limits.MAX_EDGES
  -- Unique names that a dry run would give away.
  local given = {}
  for _, selected in ipairs(found) do
    -- An earlier selected task may have changed this one.
    local x = rows.task(selected.id)
    if x and acts_on(verb, x.state) and not is_done_to(verb, of, x) then
      local edges = 0
      if x.has_edges and (verb == 'retry' or verb == 'link' or verb == 'purge') then
        edges = #rows.edges_to(x.id, nil, nil, limits.MAX_EDGES)
      end
      local below = (verb == 'retry' or verb == 'purge') and #rows.edges_from(x.id, nil, limits.MAX_EDGES) or 0
      local holder
      if verb == 'retry' and x.unique then
        local name = x.unique[1]
        local other = rows.by_name(name)
        holder = other and other.id or given[name]
        given[name] = given[name] or x.id
      end
      if holder then
        touched.taken[#touched.taken + 1] = { x.id, holder }
      else
        if is_kept(verb, x, edges, to) then
          touched.kept[#touched.kept + 1] = x.id
        else
          if verb == 'purge' and not change.dry_run and not remove_edges_of(x) then
            touched.next = work.cursor_before(selected)
            break
          end
          if verb == 'cancel' and x.state == State.Leased then
            touched.asked[#touched.asked + 1] = x.id
          end
          if not change.dry_run then
            work.change_task(x, verb, of)
          end
          touched.ids[#touched.ids + 1] = x.id
        end
        budget = budget - edges - below
        if budget <= 0 then
          touched.next = work.cursor_of('oldest', selected)
          break
        end
      end
    end
  end
  return touched
end

function work.change_task(x, verb, of)
  local after = copy_task(x)
  if verb == 'delay' then
    after.not_before = plus(work.now, of)
    work.reorder(x, after)
  elseif verb == 'priority' then
    after.priority = of ~= 0 and of or nil
    work.reorder(x, after)
  elseif verb == 'move' then
    work.move(x, after, of)
  elseif verb == 'link' then
    work.link(x, of)
  elseif verb == 'unlink' then
    work.unlink(x, of)
  elseif verb == 'tag' then
    after.tags = { unpack(x.tags or {}) }
    after.tags[#after.tags + 1] = of
    work.save(x, after)
  elseif verb == 'untag' then
    after.tags = without(x.tags, of)
    work.save(x, after)
  elseif x.state == State.Leased and (verb == 'cancel' or verb == 'release') then
    if verb == 'release' then
      after.stop = x.stop or Stop.Release
    else
      after.stop = Stop.Cancel
    end
    work.notifies = true
    work.save(x, after)
  elseif verb == 'cancel' then
    work.finish(x, State.Cancelled, 'it was cancelled')
  elseif verb == 'release' then
    after.not_before = math.min(x.not_before, work.now)
    work.admit(x, after)
  elseif verb == 'retry' then
    work.retry(x)
  else
    rows.put_payload(x.id, nil)
    rows.put_result(x.id, nil)
    rows.put_log(x.id, {})
    after.logged = nil
    after.state, after.error, after.history, after.progress = State.Purged, nil, nil, nil
    after.has_edges, after.retained = nil, nil
    work.save(x, after)
  end
end

-- Downstreams wait for it wherever they are.
function work.move(x, after, to)
  after.error, after.notified = MOVED_ERROR .. to, true
  after.tags = { unpack(x.tags or {}) }
  after.tags[#after.tags + 1] = 'moving'
  work.end_notified(x, after, State.Cancelled)
end

-- A task with a new position goes through its gates again. A run continues.
function work.reorder(x, after)
  local has_same_time = after.not_before == x.not_before
  after.due = work.due(after, x.leased and has_same_time and 0 or after.not_before)
  if x.state == State.Leased then
    return work.save(x, after)
  end
  if has_same_time and (x.state == State.Blocked or x.state == State.Ready) then
    after.not_before = math.min(x.not_before, work.now)
  end
  after.holds_key = after.holds_key and x.ordered and x.leased and true or nil
  work.admit(x, after)
end

-- Requires that its unique name is free.
function work.retry(x)
  local after = copy_task(x)
  -- A task that has left and not arrived continues as before.
  if not has_tag(x, 'moving') then
    after.failures, after.retries, after.returns, after.not_before = nil, nil, nil, nil
  end
  after.generation = x.generation + 1
  after.tags = without(x.tags, 'moving')
  after.stop, after.progress, after.ended = nil, nil, nil
  after.ended_lease_clock, after.notified, after.retained = nil, nil, nil
  -- A task that ended between two runs has recorded the last one.
  local last = x.history and x.history[#x.history]
  if x.leased and not (last and is_same(last.token, x.token)) then
    remember(after, x.state == State.Done and AttemptEnd.done or AttemptEnd.error, x.ended or work.now)
  end
  after.holds_name = x.unique and true or nil
  after.deadline = x.deadline and x.deadline > work.now and x.deadline or nil
  rows.put_result(x.id, nil)
  after.state = State.Added
  work.notifies = true
  if x.has_edges then
    work.reopen_edges(x.id)
    work.save(x, after)
  else
    work.admit(x, after)
  end
  work.reopen_below(x.id)
end

-- Downstreams that have seen the end and have not started wait again.
function work.reopen_below(up)
  for _, edge in ipairs(rows.edges_from(up, nil, limits.MAX_EDGES)) do
    if edge.state == EdgeState.Met or edge.state == EdgeState.Failed then
      local down = rows.task(edge.down)
      if down and not is_ended(down.state) and down.state ~= State.Leased then
        local other = copy(edge)
        other.state = EdgeState.New
        rows.put_edge(other)
        work.back_to_edges(down)
      end
    end
  end
end

-- Checks all upstreams again: a done upstream may run again.
function work.reopen_edges(down)
  for _, edge in ipairs(rows.edges_to(down, nil, nil, limits.MAX_EDGES)) do
    if edge.state ~= EdgeState.New then
      local other = copy(edge)
      other.state = EdgeState.New
      rows.put_edge(other)
    end
  end
end
