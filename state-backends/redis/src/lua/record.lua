-- How a queue is kept: two keys in one hash slot.
--
-- QUEUE is a hash. Its field '' is the record, each other field the presence of the shard whose id it is.
-- INDEX is a sorted set of the presences. Left of zero each shard stands by the end of its lease, its id behind a blank,
-- the one that ends next nearest to zero; right of zero each shard that has a head stands by it. So one command moves a
-- shard to both its places, and the lowest head comes right after as many leases as there are shards.
--
-- Numbers are packed as doubles: text would cost more than all else here. The parts of a script are plain code that goes
-- on with the locals of the parts before it, as each run pays for every function that it defines.

local QUEUE, INDEX = KEYS[1], KEYS[2]
local VERSION = 2
-- The version and the numbers below; behind them is the incarnation as text.
local RECORD, RECORD_SIZE = '<dddddddddddddddddd', 144
-- Head (-1: none), running, end of the lease, sequence number, last take (request or 0, first ticket, count); behind them
-- is the label as text.
local PRESENCE, PRESENCE_SIZE = '<ddddddd', 56

-- The record. `max_running` 0 stands for any number, `paused` is 0 or 1, `running` and `shards` are the sum and the number
-- of the presences. No lease ends before `next_end`. The keys expire at `kept_until`, or never if it is 0.
local interval, max_running, paused, revision = 0, 0, 0, 0
local ticket, current, free_at, held_until, line_from, gaps_until = 0, 0, 0, 0, 0, 0
local longest_lead, lifted_at, seen_at, running, shards, next_end, kept_until = 0, 0, 0, 0, 0, 2^53 - 1, 0
local incarnation = ''

-- A script that refuses returns a kind and details instead of a packed reply. It has written nothing then.
-- A shard steps; in the other scripts it is nobody, ''.
local ME = ARGV[3] or ''
local stored = redis.call('HMGET', QUEUE, '', ME)
local found = stored[1]
if found then
  local version
  if #found >= RECORD_SIZE then
    version, interval, max_running, paused, revision, ticket, current, free_at, held_until, line_from, gaps_until,
      longest_lead, lifted_at, seen_at, running, shards, next_end, kept_until = struct.unpack(RECORD, found)
    incarnation = string.sub(found, RECORD_SIZE + 1)
  end
  if version ~= VERSION then
    version = #found >= 8 and struct.unpack('<d', found) or 0
    if version > VERSION and version % 1 == 0 and version < 2^53 then
      return { 'newer', version, VERSION }
    end
    return { 'foreign', 'the record has no version' }
  end
  local fractions = interval % 1 + max_running % 1 + paused % 1 + revision % 1 + ticket % 1 + current % 1 + free_at % 1
    + held_until % 1 + line_from % 1 + gaps_until % 1 + longest_lead % 1 + lifted_at % 1 + seen_at % 1 + running % 1
    + shards % 1 + next_end % 1 + kept_until % 1
  if fractions ~= 0
    or min(max_running, paused, revision, ticket, current, free_at, held_until, line_from, gaps_until, longest_lead,
      lifted_at, seen_at, running, shards, next_end, kept_until) < 0
    or max(revision, ticket, free_at, held_until, line_from, gaps_until, lifted_at, seen_at, running, shards, next_end,
      kept_until) >= 2^53
  then
    return { 'foreign', 'a number is not whole or out of range' }
  elseif interval < 1 or interval > 31622400000000 or max_running > 4294967295 then
    return { 'foreign', 'interval or max_running is out of range' }
  elseif paused > 1 then
    return { 'foreign', 'paused is neither 0 nor 1' }
  elseif current > ticket then
    return { 'foreign', 'current is above ticket' }
  elseif longest_lead > 1000000 then
    return { 'foreign', 'longest_lead is out of range' }
  end
elseif redis.call('EXISTS', QUEUE) == 1 then
  return { 'foreign', 'it has no record' }
else
  -- That the index holds another type is an error before anything is written.
  redis.call('ZCARD', INDEX)
end

-- Which server process this is, '' where nobody may know. A client tells what it is connected to, or '?'.
local server = ARGV[2]
if server == '?' then
  local info = redis.pcall('INFO', 'server')
  server = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
end

