-- The bounds and names of the contract (limits.rs, task.rs, edge.rs, counts.rs). A test compares
-- the numbers with the contract.
-- luacheck: std lua51, max line length 120, ignore 211

local limits = {
  MAX_HELD = 10000,
  MAX_EDGES = 10000,
  MAX_CYCLE_SEARCH = 200,
  MAX_KIND_POLICIES = 100,
  MAX_PAGE = 1000,
  MAX_SCANNED = 2000,
  MAX_SEARCHED = 16777216,
  MAX_LISTED = 100,
  MAX_COUNTED = 10000,
  MAX_TAGS = 32,
  MAX_ATTEMPT = 4294967295,
  MAX_ERROR = 4096,
  MAX_HISTORY = 100,
  MAX_REPLY = 4194304,
  MIN_LEASE = 1000000,
  LATE_ADD = 600000000,
  KEEP_IDS = 1200000000,
  KEEP_PRESENCE = 3600000000,
  KEEP_TIMES = 604800000000,
  KEEP_DAYS = 34560000000000,
  FOLLOWED = 60000000,
  KEEP_EVENTS = 120000000,
  LENGTHS = 32,
  MAX_LOG = 65536,
  LOG_LINE_BYTES = 64,
  MAX_LOG_LINES = 64,
  MAX_NOTES = 16,
  MAX_RETURNS = 20,
  MAX_PRIORITY = 100,
  RULES_VERSION = 1,
  LARGEST = 2^53 - 1,
}

-- The settings of a queue without settings (settings.rs). A policy is a list: maximum attempts,
-- maximum retries, backoff, maximum backoff, and timeout or `false`. In the row of a task, and in
-- `kinds`, the policies by kind, each may be `false`: as in the kind or queue. `kinds` is nil if
-- empty.
local function default_settings()
  local day = 24 * 3600 * 1000000
  return {
    key_limit = 1,
    ageing = day,
    keep = { day, 14 * day, day },
    max_payload = 1048576,
    policy = { 5, 1000, 10000000, 3600000000, false },
  }
end

local State = {
  Added = 0, Waiting = 1, Scheduled = 2, Blocked = 3, Ready = 4, Leased = 5, Done = 6, Failed = 7, Cancelled = 8,
  Purged = 9,
}

local Counted = { EverAdded = 10, EverLeased = 11, EverDone = 12, EverFailed = 13, EverCancelled = 14 }

-- The cells of events in an hour (times.rs). Those of a day follow.
local Occurrence = { Added = 66, Done = 67, Failed = 68, Cancelled = 69, Retried = 70 }
local EVENT_CELLS = 5

-- Pending states come first, so that one lookup finds them.
local EdgeState = { New = 0, Open = 1, Held = 2, Met = 3, Failed = 4, Cut = 5 }
local OnFailure = { Cancel = 0, Run = 1, Wait = 2 }

local Stop = { Cancel = 0, Deadline = 1, Release = 2 }
local AttemptEnd = { Done = 0, Error = 1, Retry = 2, Released = 3, Stopped = 4, Died = 5, Lost = 6 }

local function is_ended(state)
  return state >= State.Done
end

-- Arithmetic of microseconds, which saturates at both ends as in Rust.

local function plus(a, b)
  local sum = a + b
  return sum < 2^53 and sum or 2^53 - 1
end

local function minus(a, b)
  return a > b and a - b or 0
end

-- The hour of an instant, counted from 1970.
local function hour_of(at)
  return math.floor(at / 3600000000)
end

-- Ends the command with an error, whose text the sender makes. Nothing has been written.
local function refuse(kind, ...)
  error({ refusal = { kind, ... } }, 0)
end
