-- A look at the record that touches nothing. Replies with the packed instant and numbers of the record, its incarnation,
-- and the id and the presence of each shard; just 'ok' if there is no such queue.

if not found then
  return { 'ok' }
end
local reply = {
  'ok',
  struct.pack('<ddddddddddddddd', now, interval, max_running, paused, revision, ticket, current, free_at, held_until,
    line_from, gaps_until, longest_lead, lifted_at, seen_at, back),
  incarnation,
}
local all = redis.call('HGETALL', QUEUE)
for i = 1, #all, 2 do
  if all[i] ~= '' then
    reply[#reply + 1] = all[i]
    reply[#reply + 1] = all[i + 1]
  end
end
return reply
