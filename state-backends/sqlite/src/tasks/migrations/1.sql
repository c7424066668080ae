-- Tables of stored tasks. Times are microseconds since 1970, flags are 0 or 1.

CREATE TABLE interval_queue_task_schema (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), version INTEGER NOT NULL) STRICT;
INSERT INTO interval_queue_task_schema VALUES (1, 1);

CREATE TABLE interval_queue_task_queue (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- JSON. None, and all that follows: only the number is given out.
    settings TEXT CHECK (settings IS NULL OR json_valid(settings)),
    paused INTEGER NOT NULL DEFAULT 0,
    paused_at INTEGER,
    incarnation INTEGER NOT NULL DEFAULT 0,
    -- The clock of leases, and the host's clock when it was read.
    lease_clock INTEGER NOT NULL DEFAULT 0,
    seen INTEGER NOT NULL DEFAULT 0,
    latest INTEGER NOT NULL DEFAULT 0,
    maintenance_due INTEGER NOT NULL DEFAULT 0,
    rebalance_after TEXT CHECK (rebalance_after IS NULL OR json_valid(rebalance_after)),
    -- JSON: since when and until when events are recorded.
    followed TEXT CHECK (followed IS NULL OR json_valid(followed))
) STRICT;

CREATE TABLE interval_queue_task (
    number INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    id TEXT NOT NULL CHECK (length(id) = 36),
    state TEXT NOT NULL CHECK (
        state = 'ready' OR state = 'leased' OR state = 'done' OR state = 'added' OR state = 'waiting' OR state = 'scheduled'
        OR state = 'blocked' OR state = 'failed' OR state = 'cancelled' OR state = 'purged'
    ),
    kind TEXT NOT NULL,
    priority INTEGER NOT NULL,
    -- Lower is more urgent.
    due INTEGER NOT NULL,
    added INTEGER NOT NULL,
    -- Orders tasks that were added at the same instant.
    position INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER NOT NULL,
    key TEXT,
    ordered INTEGER NOT NULL,
    holds_key INTEGER NOT NULL,
    unserved INTEGER NOT NULL,
    unique_name TEXT,
    unique_until TEXT CHECK (unique_until = 'ended' OR unique_until = 'leased'),
    holds_name INTEGER NOT NULL,
    weight INTEGER NOT NULL,
    tags TEXT CHECK (tags IS NULL OR json_valid(tags)),
    deadline INTEGER,
    policy TEXT CHECK (policy IS NULL OR json_valid(policy)),
    has_edges INTEGER NOT NULL,
    schedule TEXT,
    scheduled_at INTEGER,
    -- The trace in which it was added: a W3C traceparent.
    trace TEXT,
    -- The token of the last lease: these two.
    incarnation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    returns INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    worker TEXT,
    admitted INTEGER,
    leased INTEGER,
    prefetched INTEGER NOT NULL,
    stop TEXT CHECK (stop = 'cancel' OR stop = 'deadline' OR stop = 'release'),
    progress TEXT CHECK (progress IS NULL OR json_valid(progress)),
    ended INTEGER,
    ended_lease_clock INTEGER,
    notified INTEGER NOT NULL,
    retained INTEGER NOT NULL,
    error TEXT,
    history TEXT CHECK (history IS NULL OR json_valid(history)),
    -- JSON. A long one is in interval_queue_task_body.
    payload TEXT,
    result TEXT,
    -- Where it stands in the line of its key.
    line INTEGER AS (iif(ordered, added, due)) VIRTUAL
) STRICT;
CREATE UNIQUE INDEX interval_queue_task_id ON interval_queue_task (queue, id);
-- The columns are declared in interval-queue-task-contract, record.rs, and all other indexes in index.rs.

CREATE TABLE interval_queue_task_body (
    -- Payloads and results that would make the rows of interval_queue_task long, and the log, a
    -- JSON list.
    task INTEGER PRIMARY KEY,
    payload TEXT,
    result TEXT,
    log TEXT CHECK (log IS NULL OR json_valid(log))
) STRICT;

CREATE TABLE interval_queue_task_edge (
    queue INTEGER NOT NULL,
    up TEXT NOT NULL,
    down TEXT NOT NULL,
    name TEXT,
    on_failure TEXT NOT NULL,
    state TEXT NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (queue, up, down)
) STRICT, WITHOUT ROWID;
CREATE INDEX interval_queue_task_edge_down ON interval_queue_task_edge (queue, down, state, up);
CREATE INDEX interval_queue_task_edge_open ON interval_queue_task_edge (queue, up, down) WHERE state = 'new' OR state = 'open';
CREATE INDEX interval_queue_task_edge_held ON interval_queue_task_edge (queue, up, generation, down) WHERE state = 'held';

CREATE TABLE interval_queue_task_worker (
    queue INTEGER NOT NULL,
    worker TEXT NOT NULL,
    label TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    -- On the clock of leases, the ticks of its queue.
    ends INTEGER NOT NULL,
    kinds TEXT NOT NULL CHECK (json_valid(kinds)),
    version INTEGER NOT NULL,
    since INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    busy INTEGER NOT NULL,
    cleared INTEGER NOT NULL,
    -- The least priority of the tasks that the worker takes, and the largest weight. NULL in both: any task.
    at_least INTEGER,
    room INTEGER,
    PRIMARY KEY (queue, worker)
) STRICT, WITHOUT ROWID;
CREATE INDEX interval_queue_task_worker_ends ON interval_queue_task_worker (queue, cleared, ends, worker, lease, busy);

CREATE TABLE interval_queue_task_kind (
    queue INTEGER NOT NULL,
    kind TEXT NOT NULL,
    paused INTEGER NOT NULL,
    paused_at INTEGER,
    -- On the clock of leases.
    served_until INTEGER NOT NULL,
    open INTEGER NOT NULL,
    needs_rebalancing INTEGER NOT NULL,
    PRIMARY KEY (queue, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE interval_queue_task_key (
    queue INTEGER NOT NULL,
    key TEXT NOT NULL,
    -- 0: it is paused.
    max_running INTEGER,
    paused_at INTEGER,
    needs_rebalancing INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX interval_queue_task_key_needs_rebalancing ON interval_queue_task_key (queue, key) WHERE needs_rebalancing = 1;
CREATE INDEX interval_queue_task_key_paused ON interval_queue_task_key (queue, key) WHERE max_running = 0;

CREATE TABLE interval_queue_task_schedule (
    queue INTEGER NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    definition TEXT NOT NULL,
    next INTEGER,
    paused INTEGER NOT NULL,
    overlap TEXT NOT NULL,
    last TEXT,
    kept INTEGER,
    may_follow INTEGER NOT NULL,
    PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE interval_queue_task_count (
    -- Tasks by state, and all that ever were in it. Always equal to what interval_queue_task has. Without a kind: 'news', the
    -- number of the last notification of waiting workers. Here it costs no page more.
    queue INTEGER NOT NULL,
    kind TEXT NOT NULL,
    counted TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (queue, kind, counted)
) STRICT, WITHOUT ROWID;

CREATE TABLE interval_queue_task_times (
    -- Waiting times and durations of the runs of a kind within an hour (counted from 1970): a histogram and the sum; the
    -- numbers of tasks added and ended in it; and these of a whole day, at its first hour.
    queue INTEGER NOT NULL,
    kind TEXT NOT NULL,
    hour INTEGER NOT NULL,
    cell INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (queue, kind, hour, cell)
) STRICT, WITHOUT ROWID;
CREATE INDEX interval_queue_task_times_hour ON interval_queue_task_times (queue, hour);

CREATE TABLE interval_queue_task_event (
    -- Changes of a task's state while a follower is subscribed. AUTOINCREMENT: no number is used twice.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL CHECK (json_valid(event))
) STRICT;
CREATE INDEX interval_queue_task_event_queue ON interval_queue_task_event (queue, number);

-- The view remains if somebody drops the tables to start over.
DROP VIEW IF EXISTS interval_queue_tasks;
CREATE VIEW interval_queue_tasks AS
SELECT
    q.name AS queue, t.id, t.kind, t.state, t.priority, t.key, t.attempt, t.failures,
    strftime('%F %T', t.added / 1000000, 'unixepoch') AS added,
    strftime('%F %T', nullif(t.not_before, 0) / 1000000, 'unixepoch') AS not_before,
    strftime('%F %T', t.leased / 1000000, 'unixepoch') AS leased,
    strftime('%F %T', t.ended / 1000000, 'unixepoch') AS ended,
    t.worker, t.error,
    coalesce(t.payload, b.payload) AS payload,
    coalesce(t.result, b.result) AS result
FROM interval_queue_task AS t
JOIN interval_queue_task_queue AS q ON q.number = t.queue
LEFT JOIN interval_queue_task_body AS b ON b.task = t.number;
