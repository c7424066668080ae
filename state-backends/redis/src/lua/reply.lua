-- Replies to a step: what the shard is to remember, first and number of the tickets taken, whether the shard is present, when
-- it asks again (-1: never), the ticket that it waits behind, the number of grants and when they start; then what it waits
-- for, and behind a blank the shard that it waits behind. The first start is always there, as there is rarely another one.

local more = #starts > 1 and struct.pack('<' .. string.rep('d', #starts - 1), unpack(starts, 2)) or ''
local behind = 0
if reason == 'behind' then
  behind, reason = first_head, 'behind ' .. first_shard
end
return struct.pack('<ddddddddddd ddddddd c0c0', seen_at, ticket, current, free_at, revision, interval, max_running, paused,
  held_until, longest_lead, shards, first, count, presence and 1 or 0, ask_in, behind, #starts, starts[1] or 0, more, reason)
