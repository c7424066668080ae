-- Bounds and names of the contract (limits.rs, task.rs, edge.rs, counts.rs). A test compares the
-- numbers.
-- luacheck: std lua51, max line length 120, ignore 211 231

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

-- As in settings.rs. `kinds` is nil if empty.
local function default_settings()
  local day = 24 * 3600 * 1000000
  return {
    key_limit = 1,
    ageing = day,
    keep = { done = day, failed = 14 * day, cancelled = day },
    max_payload = 1048576,
    policy = { max_attempts = 5, max_retries = 1000, backoff = 10000000, max_backoff = 3600000000 },
  }
end

-- A choice is stored as the number of its variant. Commands have its name.

local State = {
  Added = 0, Waiting = 1, Scheduled = 2, Blocked = 3, Ready = 4, Leased = 5, Done = 6, Failed = 7, Cancelled = 8,
  Purged = 9,
}
local STATES = {
  added = 0, waiting = 1, scheduled = 2, blocked = 3, ready = 4, leased = 5, done = 6, failed = 7, cancelled = 8,
  purged = 9,
}

local Counted = { EverAdded = 10, EverLeased = 11, EverDone = 12, EverFailed = 13, EverCancelled = 14 }

-- Cells of an hour (times.rs); those of a day follow.
local Occurrence = { Added = 66, Done = 67, Failed = 68, Cancelled = 69, Retried = 70 }
local EVENT_CELLS = 5

-- Pending states come first, so that one lookup finds them.
local EdgeState = { New = 0, Open = 1, Held = 2, Met = 3, Failed = 4, Cut = 5 }
local OnFailure = { cancel = 0, run = 1, wait = 2 }

local Stop = { Cancel = 0, Deadline = 1, Release = 2 }
local AttemptEnd = { done = 0, error = 1, retry = 2, released = 3, stopped = 4, died = 5, lost = 6 }

local function variant(of)
  if type(of) == 'string' then
    return of
  end
  return next(of)
end

-- `nil` in a list of a reply. main.lua sets it: functions are registered without libraries.
local NIL

-- A token is its incarnation and its attempt. This one is of notes, and of tasks never leased.
local NO_TOKEN = { 0, 0 }

local function is_same(token, other)
  return token[1] == other[1] and token[2] == other[2]
end

local function is_ended(state)
  return state >= State.Done
end

-- Saturates at both ends, as in Rust.

local function plus(a, b)
  local sum = a + b
  return sum < 2^53 and sum or 2^53 - 1
end

local function minus(a, b)
  return a > b and a - b or 0
end

local function hour_of(at)
  return math.floor(at / 3600000000)
end

-- Ends the command before anything is written. The sender makes the error's text.

local function stop(why, kind, details)
  error({ [why] = #details == 0 and kind or { [kind] = details[2] and details or details[1] } }, 0)
end

-- See refusal.rs.
local function refuse(kind, ...)
  stop('refusal', kind, { ... })
end

-- See fault.rs.
local function fail(kind, ...)
  stop('fault', kind, { ... })
end
