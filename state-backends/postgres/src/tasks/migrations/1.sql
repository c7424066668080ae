-- Tables of stored tasks, and functions that add and complete tasks in SQL. Times are microseconds since 1970; the view
-- interval_queue_tasks shows them as dates.

-- # Version of the tables

CREATE TABLE interval_queue_task_schema (version integer NOT NULL);
INSERT INTO interval_queue_task_schema VALUES (1);

-- # Times in microseconds

-- STABLE, as extract() is: otherwise it would not be inlined.
CREATE FUNCTION interval_queue_task_micros(timestamptz) RETURNS bigint LANGUAGE sql STABLE
    AS 'SELECT (extract(epoch FROM $1) * 1000000)::bigint';

-- An interval's month has 30 days and its year 365.25, as PostgreSQL counts.
CREATE FUNCTION interval_queue_task_micros(interval) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT (extract(epoch FROM $1) * 1000000)::bigint';

CREATE FUNCTION interval_queue_task_now() RETURNS bigint LANGUAGE sql
    AS 'SELECT interval_queue_task_micros(clock_timestamp())';

-- # Queues

CREATE TABLE interval_queue_task_queue (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    settings json NOT NULL,
    paused boolean NOT NULL,
    paused_at bigint,
    incarnation bigint NOT NULL,
    -- Lease clock, and the server's clock when it was read.
    lease_clock bigint NOT NULL,
    seen bigint NOT NULL,
    latest bigint NOT NULL,
    maintenance_due boolean NOT NULL,
    rebalance_after json,
    -- Start and end of the recording of events.
    followed json
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- # Tasks

CREATE TABLE interval_queue_task (
    queue bigint NOT NULL,
    id uuid NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (
        state = 'ready' OR state = 'leased' OR state = 'done' OR state = 'added' OR state = 'waiting' OR state = 'scheduled'
        OR state = 'blocked' OR state = 'failed' OR state = 'cancelled' OR state = 'purged'
    ),
    kind text COLLATE "C" NOT NULL,
    priority bigint NOT NULL DEFAULT 0,
    -- Lower is more urgent.
    due bigint NOT NULL,
    added bigint NOT NULL,
    -- Orders tasks that were added at the same instant.
    position bigint NOT NULL DEFAULT 0,
    not_before bigint NOT NULL DEFAULT 0,
    key text COLLATE "C",
    ordered boolean NOT NULL DEFAULT false,
    holds_key boolean NOT NULL DEFAULT false,
    unserved boolean NOT NULL DEFAULT false,
    unique_name text COLLATE "C",
    unique_until text COLLATE "C" CHECK (unique_until = 'ended' OR unique_until = 'leased'),
    holds_name boolean NOT NULL DEFAULT false,
    weight bigint NOT NULL DEFAULT 1,
    tags jsonb,
    deadline bigint,
    policy json,
    has_edges boolean NOT NULL DEFAULT false,
    schedule text COLLATE "C",
    scheduled_at bigint,
    -- Trace in which the task was added: a W3C traceparent.
    trace text COLLATE "C",
    -- Token of the last lease: these two columns.
    incarnation bigint NOT NULL DEFAULT 0,
    attempt bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    retries bigint NOT NULL DEFAULT 0,
    returns bigint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 0,
    worker uuid,
    admitted bigint,
    leased bigint,
    prefetched boolean NOT NULL DEFAULT false,
    stop text COLLATE "C" CHECK (stop = 'cancel' OR stop = 'deadline' OR stop = 'release'),
    progress json,
    ended bigint,
    ended_lease_clock bigint,
    notified boolean NOT NULL DEFAULT false,
    retained boolean NOT NULL DEFAULT false,
    error text COLLATE "C",
    history json,
    payload json,
    result json,
    -- Lines of the runs and notes: a list.
    log json,
    -- Order of tasks that wait for the same key.
    line bigint NOT NULL GENERATED ALWAYS AS (CASE WHEN ordered THEN added ELSE due END) STORED
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- All other indexes follow: they are declared in interval-queue-task-contract, index.rs. This one lets
-- one of two concurrent adds fail.
CREATE UNIQUE INDEX interval_queue_task_name ON interval_queue_task (queue, unique_name) WHERE holds_name;
-- Without statistics, plans depend only on the indexes, not on the data at the last ANALYZE.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'interval_queue_task'::regclass AND attnum > 0 LOOP
        EXECUTE format('ALTER TABLE interval_queue_task ALTER COLUMN %I SET STATISTICS 0', name);
    END LOOP;
END
$$;

-- Low-water marks: the lowest due of the ready tasks of a kind and priority. Present while the
-- index has many entries of tasks that are no longer ready.
CREATE TABLE interval_queue_task_low_mark (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    priority bigint NOT NULL,
    due bigint NOT NULL,
    -- Last full scan, which ignores the mark.
    looked bigint NOT NULL,
    PRIMARY KEY (queue, kind, priority)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
-- Number of rows that a vacuum would remove, as counted by the server.
CREATE FUNCTION interval_queue_task_dead() RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT
    AS 'SELECT pg_stat_get_dead_tuples(''interval_queue_task''::regclass)';

-- # Edges: tasks that wait for the end of others

CREATE TABLE interval_queue_task_edge (
    queue bigint NOT NULL,
    up uuid NOT NULL,
    down uuid NOT NULL,
    name text COLLATE "C",
    on_failure text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    PRIMARY KEY (queue, up, down)
);
CREATE INDEX interval_queue_task_edge_down ON interval_queue_task_edge (queue, down, state, up);
CREATE INDEX interval_queue_task_edge_open ON interval_queue_task_edge (queue, up, down) WHERE state = 'new' OR state = 'open';
CREATE INDEX interval_queue_task_edge_held ON interval_queue_task_edge (queue, up, generation, down) WHERE state = 'held';
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'interval_queue_task_edge'::regclass AND attnum > 0 LOOP
        EXECUTE format('ALTER TABLE interval_queue_task_edge ALTER COLUMN %I SET STATISTICS 0', name);
    END LOOP;
END
$$;

-- # Workers, kinds and keys

-- Written with each poll. Has only the index of the worker, so that new versions of a row stay on
-- the same page.
CREATE TABLE interval_queue_task_worker (
    queue bigint NOT NULL,
    worker uuid NOT NULL,
    label text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    lease bigint NOT NULL,
    -- On the lease clock of the queue.
    ends bigint NOT NULL,
    kinds json NOT NULL,
    version bigint NOT NULL,
    since bigint NOT NULL,
    seen bigint NOT NULL,
    busy boolean NOT NULL,
    cleared boolean NOT NULL,
    -- Minimum priority and maximum weight of the tasks that the worker takes. NULL in both: any
    -- task.
    at_least bigint,
    room bigint,
    PRIMARY KEY (queue, worker)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE interval_queue_task_kind (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    paused boolean NOT NULL,
    paused_at bigint,
    -- On the lease clock.
    served_until bigint NOT NULL,
    open boolean NOT NULL,
    needs_rebalancing boolean NOT NULL,
    PRIMARY KEY (queue, kind)
) WITH (fillfactor = 50);

CREATE TABLE interval_queue_task_key (
    queue bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    -- 0: paused.
    max_running bigint,
    paused_at bigint,
    needs_rebalancing boolean NOT NULL,
    PRIMARY KEY (queue, key)
);
CREATE INDEX interval_queue_task_key_needs_rebalancing ON interval_queue_task_key (queue, key) WHERE needs_rebalancing;
CREATE INDEX interval_queue_task_key_paused ON interval_queue_task_key (queue, key) WHERE max_running = 0;

-- # Schedules

CREATE TABLE interval_queue_task_schedule (
    queue bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    incarnation bigint NOT NULL,
    definition json NOT NULL,
    next bigint,
    paused boolean NOT NULL,
    overlap text COLLATE "C" NOT NULL,
    last uuid,
    kept bigint,
    may_follow boolean NOT NULL,
    PRIMARY KEY (queue, name)
);

-- # Counts and durations

-- Number of tasks in each state, and in all of history. The sum of both tables always equals what
-- the tasks have. Commands insert into the second table, so that none waits for another;
-- maintenance moves these rows to the first table.
CREATE TABLE interval_queue_task_count (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    counted text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (queue, kind, counted)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
CREATE TABLE interval_queue_task_counted (
    number bigint GENERATED ALWAYS AS IDENTITY,
    queue bigint NOT NULL,
    kinds text[] NOT NULL,
    counted text[] NOT NULL,
    more bigint[] NOT NULL,
    PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Waiting times and durations of the runs of a kind within an hour, counted from 1970: a histogram
-- and the sum; the numbers of tasks added and ended in it; and these of a whole day, at its first
-- hour. Rows not added up yet are in interval_queue_task_counted, as 'took HOUR CELL'.
CREATE TABLE interval_queue_task_times (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    hour bigint NOT NULL,
    cell bigint NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (queue, kind, hour, cell)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX interval_queue_task_times_hour ON interval_queue_task_times (queue, hour);

-- # Events

-- Changes of a task's state, recorded while a follower is subscribed. Rows are written under the
-- lock of the queue, so that a command with the exclusive lock sees all rows before those still to
-- come.
CREATE TABLE interval_queue_task_event (
    number bigint GENERATED ALWAYS AS IDENTITY,
    queue bigint NOT NULL,
    at bigint NOT NULL,
    event json NOT NULL,
    PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Events of added tasks, which are stored without the lock. A trigger takes the lock when the
-- transaction commits.
CREATE TABLE interval_queue_task_event_late (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue bigint NOT NULL,
    at bigint NOT NULL,
    event json NOT NULL,
    -- When the event was recorded. Its age counts from the commit, when others can see it.
    noted bigint NOT NULL DEFAULT interval_queue_task_now()
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
-- Whether events are recorded: `Following::is_on` in event.rs.
CREATE FUNCTION interval_queue_task_is_followed(followed json, now bigint) RETURNS boolean LANGUAGE sql IMMUTABLE
    AS 'SELECT ($1 ->> ''from'')::bigint <= $2 AND $2 < ($1 ->> ''until'')::bigint
        AND ($1 ->> ''until'')::bigint - $2 <= 90000000';
CREATE FUNCTION interval_queue_task_event_comes() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema()), (NEW.queue % 2147483647)::integer);
    DELETE FROM interval_queue_task_event_late WHERE number = NEW.number;
    INSERT INTO interval_queue_task_event (queue, at, event) VALUES (
        NEW.queue, NEW.at + greatest(interval_queue_task_now() - NEW.noted, 0), NEW.event
    );
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER interval_queue_task_event_late AFTER INSERT ON interval_queue_task_event_late
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION interval_queue_task_event_comes();

-- # View for people

CREATE VIEW interval_queue_tasks AS
SELECT
    q.name AS queue, t.id, t.kind, t.state, t.priority, t.key, t.attempt, t.failures,
    to_timestamp(t.added / 1e6) AS added,
    to_timestamp(nullif(t.not_before, 0) / 1e6) AS not_before,
    to_timestamp(t.leased / 1e6) AS leased,
    to_timestamp(t.ended / 1e6) AS ended,
    t.worker, t.error, t.payload, t.result
FROM interval_queue_task AS t
JOIN interval_queue_task_queue AS q ON q.number = t.queue;

-- # Adding tasks in SQL
--
-- An application needs only the right to execute functions, because these run with the rights of the
-- owner of the tables: interval_queue_task_add, interval_queue_task_add_all,
-- interval_queue_task_complete and the functions of triggers. Their search path is fixed and ends with
-- pg_temp, so that no object of the caller replaces one of theirs. They execute no text.

CREATE FUNCTION interval_queue_task_check(what text, given text, longest integer) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    space text := '[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]';
    wrong text := CASE
        WHEN given = '' THEN format('is empty: give it 1 to %s bytes', longest)
        WHEN octet_length(given) > longest THEN format('of %s bytes is too long: at most %s', octet_length(given), longest)
        WHEN given ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'has a control character: use printable text'
        WHEN given ~ ('^' || space) OR given ~ (space || '$') THEN 'begins or ends with white space'
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '% % %', what, to_json(left(given, 40)), wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

-- The options of add_task: their types in JSON and in SQL, and the value that an error suggests.
-- The names are the fields of `interval-queue add --flow`.
CREATE FUNCTION interval_queue_task_options() RETURNS TABLE (name text, json text, sql text, retained text)
    LANGUAGE sql IMMUTABLE AS $$
VALUES
    ('id', 'string', 'uuid', 'a UUID'),
    ('priority', 'number', 'integer', '-100 to 100'),
    ('key', 'string', 'text', 'a text'),
    ('ordered', 'boolean', 'boolean', 'true or false'),
    ('delay', 'string', 'interval', 'a duration, such as "5 min"'),
    ('not_before', 'string', 'timestamptz', 'an instant, such as "2030-01-31T12:00:00Z"'),
    ('deadline', 'string', 'deadline', 'a duration from now, such as "1 h", or an instant, such as "2030-01-31T12:00:00Z"'),
    ('unique', 'string', 'text', 'a text'),
    ('unique_until', 'string', 'text', '"ended" or "leased"'),
    ('on_conflict', 'string', 'text', '"keep" or "refuse"'),
    ('weight', 'number', 'integer', '1 to 1000'),
    ('tags', 'array', 'text[]', 'a list of texts'),
    ('after', 'any', 'after', 'the id of a stored task, {"name": ID, "as": TEXT, "on_failure": TEXT}, or a list of these'),
    ('max_attempts', 'number', 'integer', '1 to 1000000'),
    ('max_retries', 'number', 'integer', '0 to 1000000'),
    ('backoff', 'string', 'interval', 'a duration, such as "10 s"'),
    ('max_backoff', 'string', 'interval', 'a duration, such as "1 h"'),
    ('timeout', 'string', 'interval', 'a duration, such as "30 s"'),
    ('trace', 'string', 'text', 'a W3C traceparent'),
    ('notify', 'boolean', 'boolean', 'true or false')
$$;

-- Whether a text can be cast to this type.
CREATE FUNCTION interval_queue_task_casts(given text, type text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    CASE type
        WHEN 'uuid' THEN PERFORM given::uuid;
        WHEN 'interval' THEN PERFORM given::interval;
        WHEN 'timestamptz' THEN PERFORM given::timestamptz;
        WHEN 'integer' THEN PERFORM given::integer;
        ELSE NULL;
    END CASE;
    RETURN true;
EXCEPTION
    WHEN data_exception THEN RETURN false;
END
$$;

-- Rejects unknown options and wrong types. NULL: the option is not set.
CREATE FUNCTION interval_queue_task_check_options(options jsonb) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    given record;
    known record;
    is_right boolean;
BEGIN
    IF jsonb_typeof(options) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'options %: give an object, such as {"key": "customer-7", "delay": "5 min"}', left(options::text, 60)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR given IN SELECT o.key AS name, o.value FROM jsonb_each(options) AS o LOOP
        SELECT * INTO known FROM interval_queue_task_options() AS o WHERE o.name = given.name;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'unknown option %: the options are %', to_json(left(given.name, 40)),
                (SELECT string_agg(o.name, ', ') FROM interval_queue_task_options() AS o)
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        CONTINUE WHEN given.value = 'null';
        is_right := known.json IN (jsonb_typeof(given.value), 'any') AND CASE known.sql
            WHEN 'deadline' THEN interval_queue_task_casts(
                given.value #>> '{}', CASE WHEN given.value #>> '{}' ~ '^\s*\d{4}-' THEN 'timestamptz' ELSE 'interval' END)
            WHEN 'text[]' THEN NOT EXISTS (
                SELECT FROM jsonb_array_elements(given.value) AS one WHERE jsonb_typeof(one) <> 'string')
            WHEN 'after' THEN NOT EXISTS (
                SELECT FROM interval_queue_task_after(given.value) AS edge
                WHERE edge.up IS NULL OR NOT interval_queue_task_casts(edge.up, 'uuid'))
            ELSE interval_queue_task_casts(given.value #>> '{}', known.sql)
        END;
        IF NOT is_right THEN
            RAISE EXCEPTION 'option % %: give %', given.name, left(given.value::text, 60), known.retained
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
END
$$;

-- The edges of the option `after`. `up` is NULL in an invalid edge.
CREATE FUNCTION interval_queue_task_after(after jsonb) RETURNS TABLE (up text, input text, on_failure text)
    LANGUAGE sql IMMUTABLE AS $$
SELECT
    CASE
        WHEN jsonb_typeof(one) = 'string' THEN one #>> '{}'
        WHEN jsonb_typeof(one) = 'object' AND one - ARRAY['name', 'as', 'on_failure'] = '{}'
            AND NOT EXISTS (SELECT FROM jsonb_each(one) AS field WHERE jsonb_typeof(field.value) <> 'string')
        THEN one ->> 'name'
    END,
    CASE WHEN jsonb_typeof(one) = 'object' THEN one ->> 'as' END,
    CASE WHEN jsonb_typeof(one) = 'object' THEN coalesce(one ->> 'on_failure', 'cancel') ELSE 'cancel' END
FROM jsonb_array_elements(CASE jsonb_typeof(after) WHEN 'array' THEN after ELSE jsonb_build_array(after) END) AS one
$$;

-- Adds a task to a queue within the calling transaction. `place` orders tasks that are added at the
-- same instant. `late`: NULL, or why a task that is not stored is rejected. The outcome is "new",
-- "again" if the task was added before, or "kept" if the stored task has its unique name.
CREATE FUNCTION interval_queue_task_add(
    queue text, kind text, payload json, options jsonb, place bigint, late text, OUT stored uuid, OUT outcome text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
<<task>>
DECLARE
    ten_years CONSTANT bigint := 10::bigint * 366 * 86400 * 1000000;
    queue CONSTANT text := $1;
    kind CONSTANT text := $2;
    -- White space around the value is no part of it.
    payload CONSTANT json := btrim($3::text, E' \t\r\n')::json;
    id uuid;
    priority integer;
    key text;
    ordered boolean;
    delay interval;
    not_before timestamptz;
    -- After it has been added.
    time_left interval;
    deadline timestamptz;
    unique_name text;
    unique_until text;
    on_conflict text;
    weight integer;
    tags text[];
    after uuid[];
    inputs text[];
    on_failures text[];
    max_attempts integer;
    max_retries integer;
    backoff interval;
    max_backoff interval;
    timeout interval;
    trace text;
    wrong text;
    tag text;
    input text;
    q interval_queue_task_queue;
    holder record;
    now bigint;
    starts bigint := 0;
    added bigint;
    policy json;
    state text := 'added';
    tries integer := 0;
BEGIN
    PERFORM interval_queue_task_check_options($4);
    task.id := ($4 ->> 'id')::uuid;
    task.priority := coalesce(($4 ->> 'priority')::integer, 0);
    task.key := $4 ->> 'key';
    task.ordered := coalesce(($4 ->> 'ordered')::boolean, false);
    task.delay := ($4 ->> 'delay')::interval;
    task.not_before := ($4 ->> 'not_before')::timestamptz;
    IF $4 ->> 'deadline' ~ '^\s*\d{4}-' THEN
        task.deadline := ($4 ->> 'deadline')::timestamptz;
    ELSE
        task.time_left := ($4 ->> 'deadline')::interval;
    END IF;
    task.unique_name := $4 ->> 'unique';
    task.unique_until := coalesce($4 ->> 'unique_until', 'ended');
    task.on_conflict := coalesce($4 ->> 'on_conflict', 'keep');
    task.weight := coalesce(($4 ->> 'weight')::integer, 1);
    IF jsonb_typeof($4 -> 'tags') = 'array' THEN
        task.tags := ARRAY(SELECT jsonb_array_elements_text($4 -> 'tags'));
    END IF;
    IF jsonb_typeof($4 -> 'after') <> 'null' THEN
        SELECT array_agg(edge.up::uuid), array_agg(edge.input), array_agg(edge.on_failure)
        INTO task.after, task.inputs, task.on_failures FROM interval_queue_task_after($4 -> 'after') AS edge;
    END IF;
    task.max_attempts := ($4 ->> 'max_attempts')::integer;
    task.max_retries := ($4 ->> 'max_retries')::integer;
    task.backoff := ($4 ->> 'backoff')::interval;
    task.max_backoff := ($4 ->> 'max_backoff')::interval;
    task.timeout := ($4 ->> 'timeout')::interval;
    task.trace := $4 ->> 'trace';
    IF octet_length(task.queue) > 200 OR task.queue IS NULL THEN
        RAISE EXCEPTION 'queue of % bytes: give a name of 1 to 200', coalesce(octet_length(task.queue), 0)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM interval_queue_task_check('queue', task.queue, 200);
    PERFORM interval_queue_task_check('kind', coalesce(task.kind, ''), 200);
    PERFORM interval_queue_task_check('key', task.key, 200);
    PERFORM interval_queue_task_check('unique name', task.unique_name, 200);
    FOREACH tag IN ARRAY coalesce(task.tags, '{}') LOOP
        PERFORM interval_queue_task_check('tag', tag, 100);
    END LOOP;
    FOREACH input IN ARRAY coalesce(task.inputs, '{}') LOOP
        PERFORM interval_queue_task_check('input', input, 200);
    END LOOP;
    wrong := CASE
        WHEN task.payload IS NULL THEN 'payload NULL: give JSON, such as null'
        WHEN task.priority NOT BETWEEN -100 AND 100 THEN
            format('priority %s: give -100 to 100', task.priority)
        WHEN task.trace !~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$' THEN
            format('trace %s is no traceparent: an example is 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
                to_json(left(task.trace, 80)))
        WHEN task.weight NOT BETWEEN 1 AND 1000 THEN
            format('weight %s: give 1 to 1000 slots', task.weight)
        WHEN task.ordered AND task.key IS NULL THEN
            'an ordered task needs a key: tasks of one key run in order'
        WHEN cardinality(task.tags) > 32 THEN format('%s tags: give at most 32', cardinality(task.tags))
        WHEN cardinality(task.after) > 10000 THEN
            format('%s upstreams: name at most 10000', cardinality(task.after))
        WHEN task.id = ANY (task.after) THEN format('task %s waits for itself: name earlier tasks', task.id)
        WHEN (SELECT count(*) <> count(DISTINCT up) FROM unnest(task.after) AS up) THEN
            'option after names an upstream twice: name each once'
        WHEN NOT task.on_failures <@ ARRAY['cancel', 'run', 'wait'] THEN
            'on_failure ' || (
                SELECT to_json(given)::text FROM unnest(task.on_failures) AS given
                WHERE given NOT IN ('cancel', 'run', 'wait') LIMIT 1
            ) || ': take cancel, run or wait'
        WHEN task.unique_until NOT IN ('ended', 'leased') THEN
            format('unique_until %s: take ended or leased', to_json(task.unique_until))
        WHEN task.on_conflict = 'replace' THEN
            'on_conflict "replace" would wait for workers: take keep or refuse in SQL, or add the task by a program'
        WHEN task.on_conflict NOT IN ('keep', 'refuse') THEN
            format('on_conflict %s: take keep or refuse', to_json(task.on_conflict))
        WHEN task.delay IS NOT NULL AND task.not_before IS NOT NULL THEN 'delay and not_before: give one of them'
        WHEN interval_queue_task_micros(task.delay) NOT BETWEEN 0 AND ten_years THEN format('delay %s: give at most ten years', task.delay)
        WHEN task.not_before < 'epoch' OR task.not_before >= '2200-01-01' THEN
            format('not_before %s: give an instant from 1970 to 2199', task.not_before)
        WHEN interval_queue_task_micros(task.time_left) NOT BETWEEN 0 AND ten_years THEN
            format('deadline %s: give at most ten years', task.time_left)
        WHEN task.deadline < 'epoch' OR task.deadline >= '2200-01-01' THEN
            format('deadline %s: give an instant from 1970 to 2199', task.deadline)
        WHEN task.max_attempts NOT BETWEEN 1 AND 1000000 THEN
            format('max attempts %s: give 1 to 1000000; 1 runs it at most once', task.max_attempts)
        WHEN task.max_retries NOT BETWEEN 0 AND 1000000 THEN
            format('max retries %s: give 0 to 1000000', task.max_retries)
        WHEN interval_queue_task_micros(task.timeout) <= 0 THEN 'timeout 0: give the run some time, or no time-out'
        WHEN interval_queue_task_micros(task.backoff) < 0
            OR interval_queue_task_micros(task.backoff) > coalesce(interval_queue_task_micros(task.max_backoff), ten_years)
            OR interval_queue_task_micros(task.max_backoff) NOT BETWEEN 0 AND ten_years THEN
            format('backoff %s up to %s: the first wait is at most the longest, and that at most ten years',
                coalesce(task.backoff, '0 s'), coalesce(task.max_backoff, '10 years'))
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Absent options are those of the queue.
    policy := nullif(json_strip_nulls(json_build_object(
        'max_attempts', task.max_attempts, 'max_retries', task.max_retries,
        'backoff', interval_queue_task_micros(task.backoff), 'max_backoff', interval_queue_task_micros(task.max_backoff),
        'timeout', interval_queue_task_micros(task.timeout)
    ))::text, '{}')::json;
    IF task.id IS NULL THEN
        -- Version 7: the time in milliseconds, and the rest at random.
        task.id := encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
            substring(int8send(interval_queue_task_now() / 1000) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid;
    END IF;

    SELECT * INTO q FROM interval_queue_task_queue WHERE name = task.queue;
    IF NOT FOUND THEN
        now := interval_queue_task_now();
        INSERT INTO interval_queue_task_queue (name, settings, paused, incarnation, lease_clock, seen, latest, maintenance_due)
        VALUES (task.queue, '{}', false, now, 0, now, now, false) ON CONFLICT DO NOTHING;
        SELECT * INTO STRICT q FROM interval_queue_task_queue WHERE name = task.queue;
    END IF;
    IF octet_length(task.payload::text) > coalesce((q.settings ->> 'max_payload')::bigint, 1048576) THEN
        RAISE EXCEPTION 'the payload of task % has % bytes: this queue stores at most %, so store what is large elsewhere and add where it is',
            task.id, octet_length(task.payload::text), coalesce((q.settings ->> 'max_payload')::bigint, 1048576)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    LOOP
        PERFORM FROM interval_queue_task AS t WHERE t.queue = q.number AND t.id = task.id;
        IF FOUND THEN
            stored := task.id;
            outcome := 'again';
            RETURN;
        ELSIF late IS NOT NULL THEN
            RAISE EXCEPTION 'task % %', task.id, late USING ERRCODE = 'unique_violation';
        END IF;
        IF task.unique_name IS NOT NULL THEN
            SELECT t.id, t.state INTO holder FROM interval_queue_task AS t
            WHERE t.queue = q.number AND t.unique_name = task.unique_name AND t.holds_name;
            IF FOUND AND task.on_conflict = 'refuse' THEN
                RAISE EXCEPTION 'task % has the unique name % and is in state %: nothing was added; wait until it has ended, cancel it, or keep or replace it',
                    holder.id, to_json(task.unique_name), holder.state USING ERRCODE = 'unique_violation';
            ELSIF FOUND THEN
                stored := holder.id;
                outcome := 'kept';
                RETURN;
            END IF;
        END IF;
        -- An upstream cannot be deleted until this is committed.
        IF task.after IS NOT NULL THEN
            SELECT up INTO holder FROM unnest(task.after) AS up WHERE up <> ALL (ARRAY(
                SELECT t.id FROM interval_queue_task AS t
                WHERE t.queue = q.number AND t.id = ANY (task.after) AND t.state <> 'purged' FOR KEY SHARE
            )) LIMIT 1;
            IF FOUND THEN
                RAISE EXCEPTION 'task % waits for %, which is not stored here: name an earlier task of the batch, or one that is there',
                    task.id, holder.up USING ERRCODE = 'foreign_key_violation';
            END IF;
        END IF;
        now := interval_queue_task_now();
        added := greatest(now, q.latest);
        IF interval_queue_task_micros(task.delay) > 0 THEN
            starts := now + interval_queue_task_micros(task.delay);
        ELSIF task.not_before IS NOT NULL THEN
            starts := interval_queue_task_micros(task.not_before);
        END IF;
        IF coalesce(cardinality(task.after), 0) = 0 AND starts > now THEN
            state := 'scheduled';
        ELSIF coalesce(cardinality(task.after), 0) = 0 AND task.key IS NULL THEN
            state := 'ready';
        END IF;
        INSERT INTO interval_queue_task (
            queue, id, state, kind, priority, due, added, position, not_before, key, ordered, unique_name, unique_until,
            holds_name, weight, tags, deadline, policy, has_edges, trace, payload
        ) VALUES (
            q.number, task.id, state, task.kind, task.priority,
            greatest(added, starts) - task.priority * coalesce((q.settings ->> 'ageing')::bigint, 86400000000),
            added, place, starts, task.key, task.ordered, task.unique_name,
            CASE WHEN task.unique_name IS NOT NULL THEN task.unique_until END, task.unique_name IS NOT NULL,
            task.weight, CASE WHEN cardinality(task.tags) > 0 THEN to_jsonb(task.tags) END,
            coalesce(interval_queue_task_micros(task.deadline), now + interval_queue_task_micros(task.time_left)), policy, coalesce(cardinality(task.after), 0) > 0, task.trace,
            task.payload
        ) ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        -- Somebody else was quicker to add it, or one with its name.
        tries := tries + 1;
        IF tries > 5 THEN
            RAISE EXCEPTION 'others add tasks with the unique name % all the time: try again', to_json(task.unique_name)
                USING ERRCODE = 'serialization_failure';
        END IF;
    END LOOP;
    IF task.after IS NOT NULL THEN
        INSERT INTO interval_queue_task_edge (queue, up, down, name, on_failure, state, generation)
        SELECT q.number, edge.up, task.id, edge.input, edge.on_failure, 'new', 0
        FROM unnest(task.after, task.inputs, task.on_failures) AS edge (up, input, on_failure);
    END IF;
    INSERT INTO interval_queue_task_counted (queue, kinds, counted, more)
    VALUES (
        -- Cell 66 counts the added tasks of an hour.
        q.number, ARRAY[task.kind, task.kind, task.kind],
        ARRAY[state, 'ever_added', format('took %s 66', now / 3600000000)], ARRAY[1, 1, 1]
    );
    IF interval_queue_task_is_followed(q.followed, now) THEN
        INSERT INTO interval_queue_task_event_late (queue, at, event) VALUES (
            q.number, now, json_build_object(
                'at', now, 'task', task.id, 'kind', task.kind, 'to', state, 'attempt', 0
            )
        );
    END IF;
    IF coalesce(($4 ->> 'notify')::boolean, true) THEN
        PERFORM pg_notify(('tasks ' || current_schema())::name::text, task.queue);
    END IF;
    stored := task.id;
    outcome := 'new';
END
$$;

-- Adds a batch: a list of objects with kind, payload and options, each with an id. Returns a list of
-- {OUTCOME: ID}. An edge to a task that its unique name keeps out leads to the task with the name.
CREATE FUNCTION interval_queue_task_add_all(queue text, tasks json, first_place bigint, late text) RETURNS json LANGUAGE plpgsql
    SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    task record;
    options jsonb;
    added record;
    kept_out uuid[] := '{}';
    holders uuid[] := '{}';
    outcomes json[] := '{}';
BEGIN
    FOR task IN SELECT t.value, t.ordinality FROM json_array_elements(tasks) WITH ORDINALITY AS t LOOP
        options := task.value -> 'options';
        IF kept_out <> '{}' AND options ? 'after' THEN
            SELECT jsonb_set(options, '{after}', jsonb_agg(up.edge ORDER BY up.number)) INTO options FROM (
                SELECT DISTINCT ON (name.id) one.edge || jsonb_build_object('name', name.id) AS edge, one.number
                FROM jsonb_array_elements(options -> 'after') WITH ORDINALITY AS one (edge, number)
                CROSS JOIN LATERAL coalesce(
                    holders[array_position(kept_out, (one.edge ->> 'name')::uuid)], (one.edge ->> 'name')::uuid
                ) AS name (id)
                ORDER BY name.id, one.number
            ) AS up;
        END IF;
        SELECT * INTO added FROM interval_queue_task_add(
            queue, task.value ->> 'kind', task.value -> 'payload', options, first_place + task.ordinality - 1, late
        );
        IF added.outcome = 'kept' THEN
            kept_out := kept_out || (options ->> 'id')::uuid;
            holders := holders || added.stored;
        END IF;
        outcomes := outcomes || json_build_object(added.outcome, added.stored);
    END LOOP;
    RETURN to_json(outcomes);
END
$$;

-- The public functions. Payload and options are json, jsonb, or text, which is the type of an
-- untyped literal. A jsonb payload has the text that PostgreSQL gives it; json and text are stored
-- unchanged.
DO $$
DECLARE
    payload text;
    options text;
BEGIN
    FOREACH payload IN ARRAY ARRAY['text', 'json', 'jsonb'] LOOP
        FOREACH options IN ARRAY ARRAY['text', 'json', 'jsonb'] LOOP
            EXECUTE format(
                'CREATE FUNCTION add_task(queue text, kind text %s, payload %s, options %s) RETURNS uuid LANGUAGE sql
                AS ''SELECT (%I.interval_queue_task_add($1, $2, $3::json, $4::jsonb, 0, NULL)).stored''',
                CASE WHEN payload = 'text' AND options = 'text' THEN 'DEFAULT ''default''' END,
                payload || CASE WHEN payload = 'text' AND options = 'text' THEN ' DEFAULT ''null''' ELSE '' END,
                options || CASE WHEN options = 'text' THEN ' DEFAULT ''{}''' ELSE '' END,
                current_schema()
            );
        END LOOP;
    END LOOP;
END
$$;

-- # Completing runs in SQL

-- Completed runs of transactions that are not committed yet. Each row is removed with the commit.
CREATE TABLE interval_queue_task_completed (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue bigint NOT NULL,
    id uuid NOT NULL,
    incarnation bigint NOT NULL,
    attempt bigint NOT NULL,
    result json,
    error text COLLATE "C"
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Completes the run when the transaction commits. Until then the transaction holds no lock that a
-- worker waits for. From here to the end of the commit it holds the shared lock of the queue, as a
-- usual poll does.
CREATE FUNCTION interval_queue_task_end() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    x record;
    ms bigint;
    cell integer;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema()), (NEW.queue % 2147483647)::integer);
    DELETE FROM interval_queue_task_completed WHERE number = NEW.number;
    UPDATE interval_queue_task AS t SET
        state = CASE WHEN NEW.error IS NULL THEN 'done' ELSE 'failed' END,
        error = CASE
            WHEN NEW.error IS NULL THEN NULL
            WHEN t.stop = 'deadline' THEN 'its deadline has passed'
            ELSE NEW.error
        END,
        failures = t.failures
            + CASE WHEN NEW.error IS NOT NULL AND coalesce(t.stop, 'release') = 'release' THEN 1 ELSE 0 END,
        result = coalesce(NEW.result, t.result),
        ended = interval_queue_task_now(), ended_lease_clock = q.lease_clock,
        holds_name = false, unserved = false, stop = NULL, notified = false
    FROM interval_queue_task_queue AS q
    WHERE q.number = NEW.queue AND t.queue = NEW.queue AND t.id = NEW.id AND t.state = 'leased'
        AND t.incarnation = NEW.incarnation AND t.attempt = NEW.attempt
        AND t.stop IS DISTINCT FROM 'cancel'
    RETURNING q.name, t.kind, t.state, t.key, t.schedule, t.leased, t.ended, t.worker, q.settings ->> 'max_running' AS max_running, t.error,
        interval_queue_task_is_followed(q.followed, t.ended) AS is_followed INTO x;
    IF NOT FOUND THEN
        IF EXISTS (
            SELECT FROM interval_queue_task AS t
            WHERE t.queue = NEW.queue AND t.id = NEW.id AND t.state = 'leased'
                AND t.incarnation = NEW.incarnation AND t.attempt = NEW.attempt
        ) THEN
            RAISE EXCEPTION 'task % was cancelled while it ran: roll back its effects', NEW.id
                USING ERRCODE = 'object_not_in_prerequisite_state';
        END IF;
        RAISE EXCEPTION 'task % is not leased with token %.% any more: roll back, it is another run''s to do',
            NEW.id, NEW.incarnation, NEW.attempt USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    ms := greatest(x.ended - coalesce(x.leased, x.ended), 0) / 1000;
    -- The numbers of runs begin at 33: how many binary digits the length has, and behind them the sum.
    cell := 33 + least(length(ltrim(ms::bit(64)::text, '0')), 31);
    INSERT INTO interval_queue_task_counted (queue, kinds, counted, more)
    VALUES (
        NEW.queue, ARRAY[x.kind, x.kind, x.kind, x.kind, x.kind, x.kind],
        ARRAY[
            'leased', x.state, 'ever_' || x.state, format('took %s %s', x.ended / 3600000000, cell),
            format('took %s 65', x.ended / 3600000000),
            -- Cell 67 counts the done tasks of an hour, 68 the failed ones.
            format('took %s %s', x.ended / 3600000000, CASE WHEN x.state = 'done' THEN 67 ELSE 68 END)
        ],
        ARRAY[-1, 1, 1, 1, ms, 1]
    );
    IF x.is_followed THEN
        INSERT INTO interval_queue_task_event (queue, at, event) VALUES (
            NEW.queue, x.ended, json_build_object(
                'at', x.ended, 'task', NEW.id, 'kind', x.kind, 'from', 'leased', 'to', x.state,
                'attempt', NEW.attempt, 'worker', x.worker, 'error', x.error
            )
        );
    END IF;
    IF x.key IS NOT NULL OR x.schedule IS NOT NULL OR x.max_running IS NOT NULL
        OR EXISTS (SELECT FROM interval_queue_task_edge WHERE queue = NEW.queue AND up = NEW.id) THEN
        PERFORM pg_notify(('tasks ' || current_schema())::name::text, x.name);
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER interval_queue_task_completed AFTER INSERT ON interval_queue_task_completed
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION interval_queue_task_end();

-- Completes the run with this token: done with this result, or failed for good with this error.
-- `worker`: NULL, or the only worker that may hold the token.
CREATE FUNCTION interval_queue_task_complete(queue text, id uuid, token text, result json, error text, worker uuid)
    RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
<<run>>
DECLARE
    q interval_queue_task_queue;
    id CONSTANT uuid := $2;
    -- White space around the value is no part of it.
    result CONSTANT json := btrim($4::text, E' \t\r\n')::json;
    error text := $5;
    bytes CONSTANT bytea := convert_to($5, 'UTF8');
    size integer := 4096;
    most bigint;
    incarnation bigint;
    attempt bigint;
    stop text;
BEGIN
    IF $3 IS NULL OR $3 !~ '^\d{1,16}\.\d{1,10}$' THEN
        RAISE EXCEPTION 'token %: give that of the run, such as 1741684364000000.1', coalesce(to_json(left($3, 40))::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    run.incarnation := split_part($3, '.', 1);
    run.attempt := split_part($3, '.', 2);
    SELECT * INTO q FROM interval_queue_task_queue WHERE name = $1;
    SELECT t.stop INTO run.stop FROM interval_queue_task AS t
    WHERE t.queue = q.number AND t.id = run.id AND t.state = 'leased' AND t.worker = coalesce($6, t.worker)
        AND t.incarnation = run.incarnation AND t.attempt = run.attempt;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'task % is not leased with token % any more: roll back, it is another run''s to do', run.id, $3
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF run.stop = 'cancel' THEN
        RAISE EXCEPTION 'task % was cancelled while it ran: roll back its effects', run.id
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    most := coalesce((q.settings ->> 'max_payload')::bigint, 1048576);
    IF octet_length(run.result::text) > most THEN
        RAISE EXCEPTION 'the result of task % has % bytes: this queue stores at most %', run.id, octet_length(run.result::text), most
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(bytes) > size THEN
        -- The beginning of the error, cut between characters.
        WHILE get_byte(bytes, size) & 192 = 128 LOOP
            size := size - 1;
        END LOOP;
        run.error := convert_from(substring(bytes FOR size), 'UTF8') || '…';
    END IF;
    INSERT INTO interval_queue_task_completed (queue, id, incarnation, attempt, result, error) VALUES (
        q.number, run.id, run.incarnation, run.attempt,
        CASE WHEN run.error IS NULL AND run.result::text <> 'null' THEN run.result END, run.error
    );
END
$$;

-- The public functions. The effects of the transaction and the end of the run are stored together
-- or not at all. The commit fails if the token of the run is no longer valid. Pass a result like
-- the payload of add_task.
DO $$
DECLARE
    type text;
BEGIN
    FOREACH type IN ARRAY ARRAY['text', 'json', 'jsonb'] LOOP
        EXECUTE format(
            'CREATE FUNCTION complete_task(queue text, id uuid, token text, result %s) RETURNS void LANGUAGE sql
            AS ''SELECT %I.interval_queue_task_complete($1, $2, $3, $4::json, NULL, NULL)''',
            type || CASE WHEN type = 'text' THEN ' DEFAULT ''null''' ELSE '' END, current_schema()
        );
    END LOOP;
    EXECUTE format(
        'CREATE FUNCTION fail_task(queue text, id uuid, token text, error text) RETURNS void LANGUAGE sql
        AS ''SELECT %I.interval_queue_task_complete($1, $2, $3, NULL, coalesce($4, ''''it does not say why''''), NULL)''',
        current_schema()
    );
END
$$;

-- # Rights

-- Only roles with this right run functions with the rights of the owner.
REVOKE EXECUTE ON FUNCTION
    interval_queue_task_add(text, text, json, jsonb, bigint, text), interval_queue_task_add_all(text, json, bigint, text),
    interval_queue_task_complete(text, uuid, text, json, text, uuid)
    FROM PUBLIC;
