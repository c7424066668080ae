-- A record that was lost or rewound is lifted again by what the shards remember: rules/loss.rs.

local function recall(memory)
  if memory.revision == 0 then
    return nil
  end
  local record = new_record(memory.interval, memory.max_running)
  record.revision = 0
  return record
end

-- `sequence` is the number that the record has of the shard; nil if it does not know the shard.
local function lift(record, now, incarnation, memory, sequence)
  local restarted = record.incarnation ~= incarnation
  local same_clock = memory.at <= add(now, CLOCK_TOLERANCE)
  local lost = memory.ticket > record.ticket
    or memory.current > record.current
    or memory.revision > record.revision
    or (same_clock and memory.revision == record.revision and memory.free_at > record.free_at)
    or (sequence ~= nil and sequence < memory.sequence)
  if not restarted and not lost then
    return
  end
  if same_clock and memory.revision >= record.revision then
    record.free_at = math.max(record.free_at, memory.free_at)
  end
  if memory.revision > record.revision then
    record.interval = memory.interval
    record.max_running = memory.max_running
    record.paused = memory.paused
    if same_clock then
      record.held_until = memory.held_until
    end
    record.revision = memory.revision
  end
  record.ticket = math.max(record.ticket, memory.ticket)
  record.current = math.max(record.current, memory.current)
  record.longest_lead = math.max(record.longest_lead, memory.longest_lead)
  if restarted or not same_clock or memory.at >= record.lifted_at then
    record.free_at = math.max(record.free_at, add(add(now, record.interval), record.longest_lead))
    record.lifted_at = now
  end
  if lost then
    record.gaps_until = record.ticket
  end
  break_line(record, add(record.ticket, 1))
  record.incarnation = incarnation
end

