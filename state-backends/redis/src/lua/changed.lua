-- Replies to a change: what a shard is to remember, and the settings before, interval 0 if there was no such queue.

return struct.pack('<ddddddddddd dd', seen_at, ticket, current, free_at, revision, interval, max_running, paused, held_until,
  longest_lead, shards, is_new_queue and 0 or interval_before, max_running_before)
