-- A record that was lost or rewound is lifted again by what the shards remember: rules/loss.rs.
-- `known_sequence` is the number that the record has of the shard, `math.huge` if it does not know the shard.

local restarted = incarnation ~= server
local same_clock = memory_at <= now + 1000000
local lost = memory_ticket > ticket
  or memory_current > current
  or memory_revision > revision
  or (same_clock and memory_revision == revision and memory_free_at > free_at)
  or known_sequence < memory_sequence
if restarted or lost then
  if same_clock and memory_revision >= revision then
    free_at = max(free_at, memory_free_at)
  end
  if memory_revision > revision then
    interval, max_running, paused, revision = memory_interval, memory_max_running, memory_paused, memory_revision
    if same_clock then
      held_until = memory_held_until
    end
  end
  ticket, current = max(ticket, memory_ticket), max(current, memory_current)
  longest_lead = max(longest_lead, memory_longest_lead)
  if restarted or not same_clock or memory_at >= lifted_at then
    free_at = max(free_at, add(add(now, interval), longest_lead))
    lifted_at = now
  end
  if lost then
    gaps_until = ticket
  end
  line_from = max(line_from, add(ticket, 1))
  incarnation = server
end

