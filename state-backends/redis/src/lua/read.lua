-- A look at the record that touches nothing: 'ok', the instant, the fields in the order below, then id and presence line of
-- each shard. Just 'ok' if there is no such queue.

local record, unreadable = load_record()
if unreadable then
  return unreadable
end
if not record then
  return { 'ok' }
end
local now, back = arrive(record, read_clock())
local reply = { 'ok', text(now), record.incarnation, text(record.max_running), record.paused and '1' or '0' }
for _, field in ipairs(NUMBERS) do
  reply[#reply + 1] = text(record[field])
end
local shards = redis.call('HGETALL', SHARDS)
for i = 1, #shards, 2 do
  local presence = parse_presence(shards[i + 1])
  if not presence then
    return refusal('foreign', 'the presence of shard ' .. shards[i])
  end
  presence.expires_at = sub(presence.expires_at, back)
  reply[#reply + 1] = shards[i]
  reply[#reply + 1] = line_of(presence)
end
return reply
