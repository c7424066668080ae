-- One step of a shard: take tickets, ask for slots, say what is left. The rules are those of rules/step.rs.
--
-- ARGV: idle expiry in ms, memory (11), shard, label, sequence, lease, lead, late policy, running, ticket given up,
-- ticket after those asked for, request number and count of the take, number of asks, number of weights of the take,
-- then the asks (ticket, weight) and the weights. '' stands for none.

local IDLE_MS, MEMORY = tonumber(ARGV[1]), memory_from(2)
local ME, LABEL = ARGV[13], ARGV[14]
local SEQUENCE, LEASE, LEAD, LATE = tonumber(ARGV[15]), tonumber(ARGV[16]), tonumber(ARGV[17]), ARGV[18]
local RUNNING, GIVEN_UP, THEN = tonumber(ARGV[19]), number(ARGV[20]), number(ARGV[21])
local REQUEST, COUNT = number(ARGV[22]), number(ARGV[23])
local ASKS, WEIGHTS = tonumber(ARGV[24]), tonumber(ARGV[25])
local FIRST_ASK = 26
local FIRST_WEIGHT = FIRST_ASK + 2 * ASKS

local function asked(n)
  return tonumber(ARGV[FIRST_ASK + 2 * n]), tonumber(ARGV[FIRST_ASK + 2 * n + 1])
end

-- All that can be wrong with a step, before anything is touched.
local function refuse(record, known, highest)
  if known and known.sequence >= SEQUENCE then
    return refusal('superseded', text(known.sequence))
  end
  local last = math.max(record and record.ticket or 0, MEMORY.ticket, highest)
  if COUNT and COUNT > MOST - last then
    return refusal('no-tickets-left', text(last))
  end
  return nil
end

-- Tickets that the shard dropped, and tickets of which the record does not know, leave their mark.
local function settle(record, known, highest)
  record.ticket = math.max(record.ticket, highest)
  if GIVEN_UP then
    record.gaps_until = math.max(record.gaps_until, math.min(GIVEN_UP, record.ticket))
  end
  -- Somebody else may hold the same tickets: no overtaken ticket owns a slot.
  if ASKS > 0 and not (known and known.head and known.head <= asked(0)) then
    break_line(record, add(record.ticket, 1))
  end
end

-- The last take, a new one or the one that is asked for again.
local function take(record, last)
  if not REQUEST or (last and last.request == REQUEST) then
    return last
  end
  local taken = { request = REQUEST, first = add(record.ticket, 1), count = COUNT }
  record.ticket = add(record.ticket, COUNT)
  return taken
end

-- Grants a leading part of what is asked for. Gives the grants, and the ticket that got none, its weight and why.
local function serve(counter, taken)
  local grants = {}
  local new = taken and math.min(taken.count, WEIGHTS) or 0
  for n = 0, ASKS + new - 1 do
    local ticket, weight
    if n < ASKS then
      ticket, weight = asked(n)
    else
      ticket, weight = add(taken.first, n - ASKS), tonumber(ARGV[FIRST_WEIGHT + n - ASKS])
    end
    local slot, reason = grant(counter, ticket, weight)
    if not slot then
      return grants, ticket, weight, reason
    end
    grants[#grants + 1] = text(ticket)
    grants[#grants + 1] = text(sub(slot, counter.now))
  end
  return grants
end

local record, unreadable = load_record()
if unreadable then
  return unreadable
end
local known = record and find_presence(ME)
local highest = THEN or (ASKS > 0 and asked(ASKS - 1)) or 0
local refused = refuse(record, known, highest)
if refused then
  return refused
end
local found = record ~= nil
record = record or recall(MEMORY)
if not record then
  return refusal('not-found')
end

local now, back = arrive(record, read_clock())
record.longest_lead = math.max(record.longest_lead, LEAD)
lift(record, now, read_incarnation(), MEMORY, known and known.sequence)
-- From here on it writes.
if not found or record.torn then
  forget_all(record)
  record.gaps_until = record.torn and record.ticket or record.gaps_until
  known = nil
end
move_leases(back)
local was_full = is_full(record, record.running)
expire(record, ME, now)
settle(record, known, highest)
local last_take = take(record, known and known.last_take)
local taken = REQUEST and last_take

local running = record.running - (known and known.running or 0) + RUNNING
if was_full and not is_full(record, running) then
  count_slots_from(record, now)
end
local counter = {
  record = record, me = ME, my_head = known and known.head, now = now, lead = LEAD, late = LATE, running = running,
}
local grants, head, weight, reason = serve(counter, taken)
head = head or THEN or (taken and taken.count > WEIGHTS and add(taken.first, WEIGHTS)) or nil
local waiting = head and wait(counter, head, weight or 1, LEASE) or { '', '', '', '' }
if reason == 'missed' then
  waiting = { 'missed', waiting[2], '', '' }
end

-- Without a limit nobody needs to know when a job ends, and a short one saves its shard the second command.
local granted = #grants / 2
local present = head or RUNNING > 0 or (record.max_running and granted > 0)
if present then
  keep_presence(record, ME, known, {
    head = head, running = math.min(RUNNING + granted, 4294967295), expires_at = add(now, LEASE), sequence = SEQUENCE,
    last_take = last_take, label = LABEL,
  })
elseif known then
  drop_presence(record, ME, known)
end
save_record(record, now, IDLE_MS)

local reply = memory_of(record)
table.insert(reply, 1, 'ok')
for _, value in ipairs({
  text(taken and taken.first), text(taken and taken.count), present and '1' or '0',
  waiting[1], waiting[2], waiting[3], waiting[4],
}) do
  reply[#reply + 1] = value
end
for _, value in ipairs(grants) do
  reply[#reply + 1] = value
end
return reply
