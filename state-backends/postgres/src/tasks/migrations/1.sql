-- Stored tasks. Times are microseconds since 1970; the view interval_queue_tasks shows them as
-- dates.

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
    followed json
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

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
    -- Of tasks that were added at the same instant.
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
    -- A W3C traceparent.
    trace text COLLATE "C",
    -- Token of the last lease.
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
    -- Lines of the runs and notes.
    log json,
    -- Order of tasks that wait for the same key.
    line bigint NOT NULL GENERATED ALWAYS AS (CASE WHEN ordered THEN added ELSE due END) STORED
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- All other indexes follow: interval-queue-task-contract declares them in index.rs. This one lets
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

-- Low-water marks: the lowest due of the ready tasks, while the index has many entries of tasks
-- that are no longer ready.
CREATE TABLE interval_queue_task_low_mark (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    priority bigint NOT NULL,
    due bigint NOT NULL,
    -- A full scan ignores the mark.
    looked bigint NOT NULL,
    PRIMARY KEY (queue, kind, priority)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
-- The server counts these rows.
CREATE FUNCTION interval_queue_task_dead() RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT
    AS 'SELECT pg_stat_get_dead_tuples(''interval_queue_task''::regclass)';

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

-- Each poll writes its row. Has only the index of the worker, so that new versions of a row stay on
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
    -- Restrict the tasks that the worker takes. NULL in both: any task.
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

-- Tasks in each state, and in all of history. The sum of both tables always equals what the tasks
-- have. Commands insert into the second table, so that none waits for another; maintenance moves
-- these rows to the first table.
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

-- By kind and hour since 1970: histograms and sums of waiting times and durations, and the numbers
-- of tasks added and ended; at a day's first hour, also these of the day. Rows not added up yet are
-- in interval_queue_task_counted, as 'took HOUR CELL'.
CREATE TABLE interval_queue_task_times (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    hour bigint NOT NULL,
    cell bigint NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (queue, kind, hour, cell)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX interval_queue_task_times_hour ON interval_queue_task_times (queue, hour);

-- Recorded while a follower is subscribed. Rows are written under the lock of the queue, so that a
-- command with the exclusive lock sees all rows before those still to come.
CREATE TABLE interval_queue_task_event (
    number bigint GENERATED ALWAYS AS IDENTITY,
    queue bigint NOT NULL,
    at bigint NOT NULL,
    event json NOT NULL,
    PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Events of added tasks, which are stored without the lock. A trigger takes it when the transaction
-- commits.
CREATE TABLE interval_queue_task_event_late (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue bigint NOT NULL,
    at bigint NOT NULL,
    event json NOT NULL,
    -- An event's age counts from the commit, when others can see it.
    noted bigint NOT NULL DEFAULT interval_queue_task_now()
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
-- `Following::is_on` in event.rs.
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
-- owner of the tables: interval_queue_task_add, interval_queue_task_complete and the functions of
-- triggers. Their search path is fixed and ends with pg_temp, so that no object of the caller
-- replaces one of theirs. They execute no text.

-- Why a text is invalid. NULL: it is valid or not set. STABLE, as format() is: PostgreSQL inlines no
-- function that is declared more stable than its body.
CREATE FUNCTION interval_queue_task_text_error(what text, given text, longest integer) RETURNS text LANGUAGE sql STABLE AS $$
SELECT $1 || ' ' || to_json(left($2, 40)) || ' ' || CASE
    WHEN $2 = '' THEN format('is empty: give it 1 to %s bytes', $3)
    WHEN octet_length($2) > $3 THEN format('of %s bytes is too long: at most %s', octet_length($2), $3)
    WHEN $2 ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'has a control character: use printable text'
    WHEN $2 ~ '^[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$'
        THEN 'begins or ends with white space'
END
$$;

-- The options of add_task, as their types in JSON. The names are the fields of
-- `interval-queue add --flow`.
CREATE TYPE interval_queue_task_options AS (
    id text, priority integer, key text, ordered boolean, delay text, not_before text, deadline text, "unique" text,
    unique_until text, on_conflict text, weight integer, tags text[], after jsonb, max_attempts integer, max_retries integer,
    backoff text, max_backoff text, timeout text, trace text, notify boolean
);

-- The edges of the option `after`. `up` is NULL in an invalid edge.
CREATE FUNCTION interval_queue_task_after(after jsonb) RETURNS TABLE (up text, input text, on_failure text, number bigint)
    LANGUAGE sql IMMUTABLE AS $$
SELECT
    CASE
        WHEN jsonb_typeof(one) = 'string' THEN one #>> '{}'
        WHEN jsonb_typeof(one) = 'object' AND one - ARRAY['name', 'as', 'on_failure'] = '{}'
            AND NOT EXISTS (SELECT FROM jsonb_each(one) AS field WHERE jsonb_typeof(field.value) <> 'string')
        THEN one ->> 'name'
    END,
    CASE WHEN jsonb_typeof(one) = 'object' THEN one ->> 'as' END,
    CASE WHEN jsonb_typeof(one) = 'object' THEN coalesce(one ->> 'on_failure', 'cancel') ELSE 'cancel' END,
    number
FROM jsonb_array_elements(CASE jsonb_typeof(after) WHEN 'array' THEN after ELSE jsonb_build_array(after) END)
    WITH ORDINALITY AS e (one, number)
$$;

-- Why options are invalid. NULL: they are valid. Empty: an option is unknown or has a wrong type. A
-- text that cannot be cast raises an error.
CREATE FUNCTION interval_queue_task_options_error(o interval_queue_task_options, options jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    ten_years CONSTANT bigint := 10::bigint * 366 * 86400 * 1000000;
    wrong text;
BEGIN
    IF (
        to_jsonb(o) @> options AND (o.id IS NULL OR o.id::uuid IS NOT NULL)
        AND (o.tags IS NULL OR NOT options @? '$.tags[*].type() ? (@ != "string")')
    ) IS NOT TRUE THEN
        RETURN '';
    ELSIF options - 'id' = '{}' THEN
        -- Without the checks below, which take longer than all else of a plain task.
        RETURN NULL;
    END IF;
    wrong := coalesce(
        interval_queue_task_text_error('key', o.key, 200), interval_queue_task_text_error('unique name', o.unique, 200)
    );
    IF o.tags IS NOT NULL THEN
        wrong := coalesce(wrong, (SELECT min(interval_queue_task_text_error('tag', tag, 100)) FROM unnest(o.tags) AS tag));
    END IF;
    IF o.after IS NOT NULL THEN
        SELECT coalesce(wrong, CASE
            WHEN bool_or(edge.up::uuid IS NULL) THEN ''
            WHEN min(interval_queue_task_text_error('input', edge.input, 200)) <> '' THEN
                min(interval_queue_task_text_error('input', edge.input, 200))
            WHEN count(*) > 10000 THEN format('%s upstreams: name at most 10000', count(*))
            WHEN bool_or(edge.up::uuid = o.id::uuid) THEN format('task %s waits for itself: name earlier tasks', o.id)
            WHEN count(*) > count(DISTINCT edge.up::uuid) THEN 'option after names an upstream twice: name each once'
            ELSE 'on_failure '
                || min(to_json(edge.on_failure)::text) FILTER (WHERE edge.on_failure NOT IN ('cancel', 'run', 'wait'))
                || ': take cancel, run or wait'
        END) INTO wrong FROM interval_queue_task_after(o.after) AS edge;
    END IF;
    RETURN coalesce(wrong, CASE
        WHEN o.priority NOT BETWEEN -100 AND 100 THEN format('priority %s: give -100 to 100', o.priority)
        WHEN o.trace !~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$' THEN
            format('trace %s is no traceparent: an example is 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
                to_json(left(o.trace, 80)))
        WHEN o.weight NOT BETWEEN 1 AND 1000 THEN format('weight %s: give 1 to 1000 slots', o.weight)
        WHEN o.ordered AND o.key IS NULL THEN 'an ordered task needs a key: tasks of one key run in order'
        WHEN cardinality(o.tags) > 32 THEN format('%s tags: give at most 32', cardinality(o.tags))
        WHEN o.unique_until NOT IN ('ended', 'leased') THEN
            format('unique_until %s: take ended or leased', to_json(o.unique_until))
        WHEN o.on_conflict = 'replace' THEN
            'on_conflict "replace" would wait for workers: take keep or refuse in SQL, or add the task by a program'
        WHEN o.on_conflict NOT IN ('keep', 'refuse') THEN
            format('on_conflict %s: take keep or refuse', to_json(o.on_conflict))
        WHEN o.delay IS NOT NULL AND o.not_before IS NOT NULL THEN 'delay and not_before: give one of them'
        WHEN interval_queue_task_micros(o.delay::interval) NOT BETWEEN 0 AND ten_years THEN
            format('delay %s: give at most ten years', o.delay::interval)
        WHEN o.not_before::timestamptz < 'epoch' OR o.not_before::timestamptz >= '2200-01-01' THEN
            format('not_before %s: give an instant from 1970 to 2199', o.not_before::timestamptz)
        WHEN o.deadline ~ '^\s*\d{4}-' AND (o.deadline::timestamptz < 'epoch' OR o.deadline::timestamptz >= '2200-01-01') THEN
            format('deadline %s: give an instant from 1970 to 2199', o.deadline::timestamptz)
        WHEN o.deadline !~ '^\s*\d{4}-'
            AND interval_queue_task_micros(o.deadline::interval) NOT BETWEEN 0 AND ten_years THEN
            format('deadline %s: give at most ten years', o.deadline::interval)
        WHEN o.max_attempts NOT BETWEEN 1 AND 1000000 THEN
            format('max attempts %s: give 1 to 1000000; 1 runs it at most once', o.max_attempts)
        WHEN o.max_retries NOT BETWEEN 0 AND 1000000 THEN
            format('max retries %s: give 0 to 1000000', o.max_retries)
        WHEN interval_queue_task_micros(o.timeout::interval) <= 0 THEN 'timeout 0: give the run some time, or no time-out'
        WHEN interval_queue_task_micros(o.backoff::interval) < 0
            OR interval_queue_task_micros(o.backoff::interval)
                > coalesce(interval_queue_task_micros(o.max_backoff::interval), ten_years)
            OR interval_queue_task_micros(o.max_backoff::interval) NOT BETWEEN 0 AND ten_years THEN
            format('backoff %s up to %s: the first wait is at most the longest, and that at most ten years',
                coalesce(o.backoff::interval, '0 s'), coalesce(o.max_backoff::interval, '10 years'))
    END);
END
$$;

-- Raises an error that names the unknown option, or the option of a wrong type and what to give.
CREATE FUNCTION interval_queue_task_check_options(options jsonb) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    given record;
    one jsonb;
    wrong text;
    known CONSTANT jsonb := '{
        "id": "a UUID", "priority": "-100 to 100", "key": "a text", "ordered": "true or false",
        "delay": "a duration, such as \"5 min\"", "not_before": "an instant, such as \"2030-01-31T12:00:00Z\"",
        "deadline": "a duration from now, such as \"1 h\", or an instant, such as \"2030-01-31T12:00:00Z\"",
        "unique": "a text", "unique_until": "\"ended\" or \"leased\"", "on_conflict": "\"keep\" or \"refuse\"",
        "weight": "1 to 1000", "tags": "a list of texts",
        "after": "the id of a stored task, {\"name\": ID, \"as\": TEXT, \"on_failure\": TEXT}, or a list of these",
        "max_attempts": "1 to 1000000", "max_retries": "0 to 1000000", "backoff": "a duration, such as \"10 s\"",
        "max_backoff": "a duration, such as \"1 h\"", "timeout": "a duration, such as \"30 s\"",
        "trace": "a W3C traceparent", "notify": "true or false"
    }';
BEGIN
    IF jsonb_typeof(options) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'options %: give an object, such as {"key": "customer-7", "delay": "5 min"}', left(options::text, 60)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR given IN SELECT o.key AS name, o.value FROM jsonb_each(options) AS o LOOP
        IF NOT known ? given.name THEN
            RAISE EXCEPTION 'unknown option %: the options are %', to_json(left(given.name, 40)), (
                SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
                WHERE attrelid = 'interval_queue_task_options'::regclass
            ) USING ERRCODE = 'invalid_parameter_value';
        END IF;
        BEGIN
            one := jsonb_build_object(given.name, given.value);
            wrong := interval_queue_task_options_error(jsonb_populate_record(NULL::interval_queue_task_options, one), one);
        EXCEPTION
            WHEN data_exception THEN wrong := '';
        END;
        IF wrong = '' THEN
            RAISE EXCEPTION 'option % %: give %', given.name, left(given.value::text, 60), known ->> given.name
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
END
$$;

-- Adds tasks to a queue within the calling transaction. `first_place` orders tasks that are added at
-- the same instant. `late`: NULL, or why a task that is not stored is rejected. An outcome is "new",
-- "again" if the task was added before, or "kept" if the stored task has its unique name. An edge to
-- a task that its unique name keeps out leads to the task with the name. The plans are the same for
-- any number of tasks, and read no table of tasks as a whole while it is small.
CREATE FUNCTION interval_queue_task_add(
    queue text, kinds text[], payloads json[], options jsonb[], first_place bigint, late text,
    OUT stored uuid[], OUT outcomes text[]
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    q interval_queue_task_queue;
    max_payload bigint;
    given interval_queue_task_options[];
    o interval_queue_task_options;
    notifies boolean := false;
    -- Whether a task has the option `after`.
    waits boolean := false;
    wrong text;
    code text := 'invalid_parameter_value';
    now bigint;
    added bigint;
    tries integer := 0;
    new record;
    place bigint;
    -- The ids of tasks that their unique names keep out.
    kept uuid[];
    -- Number of tasks before the first wrong one.
    checked integer := cardinality(kinds);
    holder record;
    missing record;
BEGIN
    SELECT * INTO q FROM interval_queue_task_queue WHERE name = $1;
    IF NOT FOUND THEN
        wrong := CASE
            WHEN octet_length($1) <= 200 THEN interval_queue_task_text_error('queue', $1, 200)
            ELSE format('queue of %s bytes: give a name of 1 to 200', coalesce(octet_length($1), 0))
        END;
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
        END IF;
        now := interval_queue_task_now();
        INSERT INTO interval_queue_task_queue (name, settings, paused, incarnation, lease_clock, seen, latest, maintenance_due)
        VALUES ($1, '{}', false, now, 0, now, now, false) ON CONFLICT DO NOTHING;
        SELECT * INTO STRICT q FROM interval_queue_task_queue WHERE name = $1;
    END IF;
    outcomes := array_fill(NULL::text, ARRAY[cardinality(kinds)]);
    BEGIN
        FOR n IN 1 .. cardinality(kinds) LOOP
            o := jsonb_populate_record(NULL::interval_queue_task_options, options[n]);
            wrong := coalesce(
                interval_queue_task_options_error(o, options[n]), interval_queue_task_text_error('kind', coalesce(kinds[n], ''), 200),
                CASE WHEN payloads[n] IS NULL THEN 'payload NULL: give JSON, such as null' END
            );
            EXIT WHEN wrong IS NOT NULL;
            given[n] := o;
            IF o.id IS NULL THEN
                -- Version 7: the time in milliseconds, and the rest at random.
                stored[n] := encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
                    substring(int8send(interval_queue_task_now() / 1000) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid;
            ELSE
                stored[n] := o.id::uuid;
            END IF;
            notifies := notifies OR o.notify IS NOT FALSE;
            waits := waits OR o.after IS NOT NULL;
        END LOOP;
        IF wrong = '' THEN
            RAISE data_exception;
        END IF;
    EXCEPTION
        WHEN data_exception THEN
            PERFORM interval_queue_task_check_options(o) FROM unnest(options) AS o;
            RAISE;
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    max_payload := coalesce((q.settings ->> 'max_payload')::bigint, 1048576);
    now := interval_queue_task_now();
    added := greatest(now, q.latest);
    LOOP
        -- The lookups wait for no transaction that changes a stored task. The unique indexes keep out
        -- tasks that are twice in the batch, whose name an earlier one has, or that others add.
        FOR new IN WITH new AS (
            INSERT INTO interval_queue_task (
                queue, id, state, kind, priority, due, added, position, not_before, key, ordered, unique_name, unique_until,
                holds_name, weight, tags, deadline, policy, has_edges, trace, payload
            )
            SELECT
                q.number, t.task_id,
                CASE
                    WHEN has_edges THEN 'added' WHEN starts > now THEN 'scheduled' WHEN t.key IS NULL THEN 'ready' ELSE 'added'
                END,
                t.kind, coalesce(t.priority, 0),
                greatest(added, starts) - coalesce(t.priority, 0) * coalesce((q.settings ->> 'ageing')::bigint, 86400000000),
                added, first_place + t.ordinality - 1, starts, t.key, coalesce(t.ordered, false), t.unique,
                CASE WHEN t.unique IS NOT NULL THEN coalesce(t.unique_until, 'ended') END, t.unique IS NOT NULL,
                coalesce(t.weight, 1), CASE WHEN t.tags <> '{}' THEN to_jsonb(t.tags) END,
                CASE
                    WHEN t.deadline ~ '^\s*\d{4}-' THEN interval_queue_task_micros(t.deadline::timestamptz)
                    ELSE now + interval_queue_task_micros(t.deadline::interval)
                END,
                -- Absent options are those of the queue.
                CASE WHEN num_nonnulls(t.max_attempts, t.max_retries, t.backoff, t.max_backoff, t.timeout) > 0 THEN
                    json_strip_nulls(json_build_object(
                        'max_attempts', t.max_attempts, 'max_retries', t.max_retries,
                        'backoff', interval_queue_task_micros(t.backoff::interval),
                        'max_backoff', interval_queue_task_micros(t.max_backoff::interval),
                        'timeout', interval_queue_task_micros(t.timeout::interval)
                    ))
                END,
                has_edges, t.trace, t.payload
            FROM unnest(outcomes, stored, kinds, payloads, given) WITH ORDINALITY AS t (outcome, task_id, kind, payload)
            CROSS JOIN LATERAL (SELECT
                coalesce(t.after <> '[]', false) AS has_edges,
                CASE
                    WHEN interval_queue_task_micros(t.delay::interval) > 0
                    THEN now + interval_queue_task_micros(t.delay::interval)
                    ELSE coalesce(interval_queue_task_micros(t.not_before::timestamptz), 0)
                END AS starts
            ) AS x
            WHERE t.outcome IS NULL AND late IS NULL AND octet_length(t.payload::text) <= max_payload
                AND (SELECT s.id FROM interval_queue_task AS s WHERE s.queue = q.number AND s.id = t.task_id) IS NULL
                AND (t.unique IS NULL OR (
                    SELECT s.id FROM interval_queue_task AS s
                    WHERE s.queue = q.number AND s.unique_name = t.unique AND s.holds_name
                ) IS NULL)
            ORDER BY t.ordinality
            ON CONFLICT DO NOTHING RETURNING id, kind, state, position - first_place + 1 AS n
        ), counted AS (
            INSERT INTO interval_queue_task_counted (queue, kinds, counted, more)
            SELECT q.number, array_agg(c.kind), array_agg(c.counted), array_agg(c.more) FROM (
                SELECT new.kind, c.counted, count(*) AS more FROM new
                -- Cell 66 counts the added tasks of an hour.
                CROSS JOIN LATERAL (VALUES (new.state), ('ever_added'), (format('took %s 66', now / 3600000000))) AS c (counted)
                GROUP BY new.kind, c.counted
            ) AS c HAVING count(*) > 0
        ), noted AS (
            INSERT INTO interval_queue_task_event_late (queue, at, event)
            SELECT q.number, now, json_build_object('at', now, 'task', id, 'kind', kind, 'to', state, 'attempt', 0)
            FROM new WHERE interval_queue_task_is_followed(q.followed, now)
        )
        SELECT n FROM new LOOP
            outcomes[new.n] := 'new';
        END LOOP;
        FOR n IN 1 .. cardinality(kinds) LOOP
            CONTINUE WHEN outcomes[n] IS NOT NULL;
            SELECT t.position - first_place + 1 INTO place FROM interval_queue_task AS t
            WHERE t.queue = q.number AND t.id = stored[n];
            IF octet_length(payloads[n]::text) > max_payload THEN
                wrong := format('the payload of task %s has %s bytes: this queue stores at most %s, so store what is large elsewhere and add where it is',
                    stored[n], octet_length(payloads[n]::text), max_payload);
            ELSIF FOUND AND (
                -- A later task of the batch may have the id.
                place BETWEEN n AND cardinality(stored) AND outcomes[place] = 'new' AND stored[place] = stored[n]
            ) IS NOT TRUE THEN
                outcomes[n] := 'again';
            ELSIF late IS NOT NULL THEN
                wrong := format('task %s %s', stored[n], late);
                code := 'unique_violation';
            ELSE
                SELECT t.id, t.state INTO holder FROM interval_queue_task AS t
                WHERE t.queue = q.number AND t.unique_name = (given[n]).unique AND t.holds_name;
                IF FOUND AND (given[n]).on_conflict = 'refuse' THEN
                    wrong := format('task %s has the unique name %s and is in state %s: nothing was added; wait until it has ended, cancel it, or keep or replace it',
                        holder.id, to_json((given[n]).unique), holder.state);
                    code := 'unique_violation';
                ELSIF FOUND THEN
                    outcomes[n] := 'kept';
                    kept[n] := stored[n];
                    stored[n] := holder.id;
                ELSIF tries = 5 THEN
                    wrong := format('others add tasks with the unique name %s all the time: try again', to_json((given[n]).unique));
                    code := 'serialization_failure';
                END IF;
            END IF;
            IF wrong IS NOT NULL THEN
                checked := n - 1;
                EXIT;
            END IF;
        END LOOP;
        EXIT WHEN wrong IS NOT NULL OR array_position(outcomes, NULL) IS NULL;
        -- Another transaction was first, and what it added is gone already.
        tries := tries + 1;
    END LOOP;
    IF waits THEN
        WITH edge AS MATERIALIZED (
            SELECT t.ordinality AS n, t.task_id AS id, e.input, e.on_failure, e.number, CASE
                WHEN array_position(kept, e.up::uuid) < t.ordinality THEN stored[array_position(kept, e.up::uuid)]
                ELSE e.up::uuid
            END AS up
            FROM unnest(outcomes, stored, given) WITH ORDINALITY AS t (outcome, task_id)
            CROSS JOIN LATERAL interval_queue_task_after(t.after) AS e
            WHERE t.outcome = 'new' AND t.after IS NOT NULL AND t.ordinality <= checked
        ), found AS MATERIALIZED (
            -- An upstream cannot be deleted until this is committed. It is no later task of the batch.
            SELECT edge.*, t.place IS NOT NULL AND (
                t.place BETWEEN edge.n AND cardinality(stored) AND outcomes[t.place] = 'new' AND stored[t.place] = edge.up
            ) IS NOT TRUE AS is_there
            FROM edge LEFT JOIN LATERAL (
                SELECT t.position - first_place + 1 AS place FROM interval_queue_task AS t
                WHERE t.queue = q.number AND t.id = edge.up AND t.state <> 'purged' FOR KEY SHARE
            ) AS t ON true
        ), written AS (
            INSERT INTO interval_queue_task_edge (queue, up, down, name, on_failure, state, generation)
            SELECT DISTINCT ON (n, up) q.number, up, id, input, on_failure, 'new', 0 FROM found
            WHERE is_there ORDER BY n, up, number
        )
        SELECT id, up INTO missing FROM found WHERE NOT is_there ORDER BY n, number LIMIT 1;
        IF FOUND THEN
            wrong := format('task %s waits for %s, which is not stored here: name an earlier task of the batch, or one that is there',
                missing.id, missing.up);
            code := 'foreign_key_violation';
        END IF;
    END IF;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = code;
    END IF;
    IF notifies AND 'new' = ANY (outcomes) THEN
        PERFORM pg_notify(('tasks ' || current_schema())::name::text, $1);
    END IF;
END
$$;

-- The public functions. Payload and options are json, jsonb, or text, which is the type of an
-- untyped literal. A jsonb payload has the text that PostgreSQL gives it; json and text are stored
-- unchanged, but for white space around the value.
DO $$
DECLARE
    payload text;
    options text;
BEGIN
    FOREACH payload IN ARRAY ARRAY['text', 'json', 'jsonb'] LOOP
        FOREACH options IN ARRAY ARRAY['text', 'json', 'jsonb'] LOOP
            EXECUTE format(
                'CREATE FUNCTION add_task(queue text, kind text %s, payload %s, options %s) RETURNS uuid LANGUAGE sql
                AS ''SELECT (%I.interval_queue_task_add($1, ARRAY[$2], ARRAY[btrim($3::text, E'''' \t\r\n'''')::json], ARRAY[$4::jsonb], 0, NULL)).stored[1]''',
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

-- Runs completed by open transactions. Each row is removed with the commit.
CREATE TABLE interval_queue_task_completed (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue bigint NOT NULL,
    id uuid NOT NULL,
    incarnation bigint NOT NULL,
    attempt bigint NOT NULL,
    result json,
    error text COLLATE "C"
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Runs at the commit. Before, the transaction holds no lock that a worker waits for; from here on
-- it holds the shared lock of the queue, as a usual poll does.
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
    -- Cells of runs begin at 33, by the binary digits of the length; the sum follows.
    cell := 33 + least(length(ltrim(ms::bit(64)::text, '0')), 31);
    INSERT INTO interval_queue_task_counted (queue, kinds, counted, more)
    VALUES (
        NEW.queue, ARRAY[x.kind, x.kind, x.kind, x.kind, x.kind, x.kind],
        ARRAY[
            'leased', x.state, 'ever_' || x.state, format('took %s %s', x.ended / 3600000000, cell),
            format('took %s 65', x.ended / 3600000000),
            -- Cell 67 counts done tasks, 68 failed ones.
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

-- Done with this result, or failed for good with this error. `worker`: NULL, or the only worker
-- that may hold the token.
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
        -- Cuts between characters.
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
-- or not at all: the commit fails if the token is no longer valid. Pass a result like the payload
-- of add_task.
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

-- Only roles with this right run functions with the rights of the owner.
REVOKE EXECUTE ON FUNCTION
    interval_queue_task_add(text, text[], json[], jsonb[], bigint, text),
    interval_queue_task_complete(text, uuid, text, json, text, uuid)
    FROM PUBLIC;
