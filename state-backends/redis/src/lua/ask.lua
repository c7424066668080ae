-- What a shard says and asks with a step, what the record knows of it, and all that can be wrong with it. Nothing was
-- touched yet.
--
-- ARGV: packed numbers, name of the server, shard, label. After the numbers below come the asks, each a ticket and a
-- weight, and the weights of the take. 0 stands for none, -1 for no ticket. LOWEST is the first ticket that asks, HIGHEST
-- the highest that the shard holds.

local idle, memory_at, memory_sequence, memory_ticket, memory_current, memory_free_at, memory_revision, memory_interval,
  memory_max_running, memory_paused, memory_held_until, memory_longest_lead,
  SEQUENCE, LEASE, LEAD, LATE, RUNNING, GIVEN_UP, THEN, LOWEST, HIGHEST, REQUEST, COUNT, ASKS, WEIGHTS,
  FIRST_ASK = struct.unpack('<d ddddddddddd ddddddddddddd', ARGV[1])
local LABEL = ARGV[4]
local REQUEUE = 1

local known = stored[2]
local known_head, known_running, known_sequence, last_request, last_first, last_count = -1, 0, math.huge, 0, 0, 0
if known then
  local expires_at
  if #known >= PRESENCE_SIZE then
    known_head, known_running, expires_at, known_sequence, last_request, last_first, last_count
      = struct.unpack(PRESENCE, known)
  end
  if not expires_at or (known_head + known_running + known_sequence + last_first + last_count) % 1 ~= 0 then
    return { 'foreign', 'the presence of a shard cannot be read' }
  elseif known_sequence >= SEQUENCE then
    return { 'superseded', known_sequence }
  end
end

local last = max(ticket, memory_ticket, HIGHEST)
if COUNT > 2^53 - 1 - last then
  return { 'no-tickets-left', last }
end
if not found then
  if memory_revision == 0 then
    return { 'not-found' }
  end
  interval, max_running = memory_interval, memory_max_running
end
if LEAD > longest_lead then
  longest_lead = LEAD
end

