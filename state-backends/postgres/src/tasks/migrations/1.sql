CREATE TABLE interval_queue_task_schema (version integer NOT NULL);
INSERT INTO interval_queue_task_schema VALUES (1);

-- Times are microseconds since 1970, here and in all tables beside it; the view interval_queue_tasks shows them as dates.
CREATE TABLE interval_queue_task_queue (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    settings json NOT NULL,
    paused boolean NOT NULL,
    incarnation bigint NOT NULL,
    -- The clock of leases, and the server's clock when it was read.
    ticks bigint NOT NULL,
    seen bigint NOT NULL,
    latest bigint NOT NULL,
    unswept boolean NOT NULL,
    level_after json
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE interval_queue_task (
    queue bigint NOT NULL,
    id uuid NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (
        state = 'ready' OR state = 'leased' OR state = 'done' OR state = 'added' OR state = 'waiting' OR state = 'scheduled'
        OR state = 'keyed' OR state = 'failed' OR state = 'cancelled' OR state = 'purged'
    ),
    kind text COLLATE "C" NOT NULL,
    priority bigint NOT NULL DEFAULT 0,
    -- Lower is more urgent.
    due bigint NOT NULL,
    added bigint NOT NULL,
    not_before bigint NOT NULL DEFAULT 0,
    key text COLLATE "C",
    ordered boolean NOT NULL DEFAULT false,
    holds_key boolean NOT NULL DEFAULT false,
    parked boolean NOT NULL DEFAULT false,
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
    -- The token of the last lease: these two.
    incarnation bigint NOT NULL DEFAULT 0,
    attempt bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    retries bigint NOT NULL DEFAULT 0,
    returns bigint NOT NULL DEFAULT 0,
    life bigint NOT NULL DEFAULT 0,
    worker uuid,
    leased bigint,
    stop text COLLATE "C" CHECK (stop = 'cancel' OR stop = 'deadline' OR stop = 'release'),
    progress json,
    ended bigint,
    ended_tick bigint,
    told boolean NOT NULL DEFAULT false,
    wanted boolean NOT NULL DEFAULT false,
    error text COLLATE "C",
    history json,
    payload json,
    result json,
    -- Where it stands in the line of its key.
    line bigint NOT NULL GENERATED ALWAYS AS (CASE WHEN ordered THEN added ELSE due END) STORED,
    PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX interval_queue_task_name ON interval_queue_task (queue, unique_name) WHERE holds_name;
CREATE INDEX interval_queue_task_added ON interval_queue_task (queue, due, id) WHERE state = 'added';
CREATE INDEX interval_queue_task_scheduled ON interval_queue_task (queue, not_before, id) WHERE state = 'scheduled';
CREATE INDEX interval_queue_task_ready ON interval_queue_task (queue, kind, priority, due, id) WHERE state = 'ready';
CREATE INDEX interval_queue_task_leased ON interval_queue_task (queue, worker, id) WHERE state = 'leased';
CREATE INDEX interval_queue_task_leased_key ON interval_queue_task (queue, key) WHERE key IS NOT NULL AND state = 'leased';
CREATE INDEX interval_queue_task_stop ON interval_queue_task (queue, worker, id) WHERE stop IS NOT NULL;
CREATE INDEX interval_queue_task_holder ON interval_queue_task (queue, key, ordered, line, id) WHERE holds_key;
CREATE INDEX interval_queue_task_ready_holder ON interval_queue_task (queue, kind, id) WHERE holds_key AND state = 'ready';
CREATE INDEX interval_queue_task_line ON interval_queue_task (queue, key, parked, line, id) WHERE state = 'keyed';
CREATE INDEX interval_queue_task_parked ON interval_queue_task (queue, kind, id) WHERE parked;
CREATE INDEX interval_queue_task_deadline ON interval_queue_task (queue, deadline, id)
    WHERE deadline IS NOT NULL AND stop IS NULL AND ended IS NULL;
CREATE INDEX interval_queue_task_untold ON interval_queue_task (queue, id) WHERE NOT told AND ended IS NOT NULL;
CREATE INDEX interval_queue_task_ended ON interval_queue_task (queue, state, ended, id) WHERE told AND NOT wanted;
-- Without statistics a plan depends on which indexes there are, and not on what was stored when somebody last looked.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'interval_queue_task'::regclass AND attnum > 0 LOOP
        EXECUTE format('ALTER TABLE interval_queue_task ALTER COLUMN %I SET STATISTICS 0', name);
    END LOOP;
END
$$;

-- From which due on tasks of a kind and priority are ready, while the index has many entries of tasks that are not any more.
CREATE TABLE interval_queue_task_floor (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    priority bigint NOT NULL,
    due bigint NOT NULL,
    -- When somebody has last looked below it.
    looked bigint NOT NULL,
    PRIMARY KEY (queue, kind, priority)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
-- How many rows a vacuum would remove, as far as the server has counted.
CREATE FUNCTION interval_queue_task_dead() RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT
    AS 'SELECT pg_stat_get_dead_tuples(''interval_queue_task''::regclass)';

CREATE TABLE interval_queue_task_edge (
    -- Tasks that wait for the end of others.
    queue bigint NOT NULL,
    up uuid NOT NULL,
    down uuid NOT NULL,
    name text COLLATE "C",
    on_failure text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    life bigint NOT NULL,
    PRIMARY KEY (queue, up, down)
);
CREATE INDEX interval_queue_task_edge_down ON interval_queue_task_edge (queue, down, state, up);
CREATE INDEX interval_queue_task_edge_open ON interval_queue_task_edge (queue, up, down) WHERE state = 'new' OR state = 'open';
CREATE INDEX interval_queue_task_edge_held ON interval_queue_task_edge (queue, up, life, down) WHERE state = 'held';
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'interval_queue_task_edge'::regclass AND attnum > 0 LOOP
        EXECUTE format('ALTER TABLE interval_queue_task_edge ALTER COLUMN %I SET STATISTICS 0', name);
    END LOOP;
END
$$;

-- Written with each step: no index but that of the worker, so that a new version of a row stays on its page.
CREATE TABLE interval_queue_task_worker (
    queue bigint NOT NULL,
    worker uuid NOT NULL,
    label text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    lease bigint NOT NULL,
    -- On the clock of leases, the ticks of its queue.
    ends bigint NOT NULL,
    kinds json NOT NULL,
    version bigint NOT NULL,
    since bigint NOT NULL,
    seen bigint NOT NULL,
    busy boolean NOT NULL,
    cleared boolean NOT NULL,
    PRIMARY KEY (queue, worker)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE interval_queue_task_kind (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    paused boolean NOT NULL,
    -- On the clock of leases.
    served_until bigint NOT NULL,
    open boolean NOT NULL,
    uneven boolean NOT NULL,
    PRIMARY KEY (queue, kind)
) WITH (fillfactor = 50);

CREATE TABLE interval_queue_task_key (
    queue bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    max_running bigint,
    uneven boolean NOT NULL,
    PRIMARY KEY (queue, key)
);
CREATE INDEX interval_queue_task_key_uneven ON interval_queue_task_key (queue, key) WHERE uneven;

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

-- How many there are in a state, and how many there ever were: the sum of both tables is always what the tasks say. A
-- command adds a row to the second one, so that none waits for another one; a sweep moves these rows to the first one.
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

CREATE FUNCTION interval_queue_task_micros(timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT (extract(epoch FROM $1) * 1000000)::bigint';

-- Of an interval, where a month has 30 days and a year 365.25, as the server has it.
CREATE FUNCTION interval_queue_task_micros(interval) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT (extract(epoch FROM $1) * 1000000)::bigint';

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

-- Adds a task to a queue, in the transaction that calls it: kept with it, or taken back with it. It gives the id of the
-- task, or of the one that has its unique name. A repeated call with an id that is there adds nothing.
CREATE FUNCTION add_task(
    queue text,
    kind text DEFAULT 'default',
    payload json DEFAULT 'null',
    id uuid DEFAULT NULL,
    priority integer DEFAULT 0,
    key text DEFAULT NULL,
    ordered boolean DEFAULT false,
    delay interval DEFAULT NULL,
    not_before timestamptz DEFAULT NULL,
    deadline timestamptz DEFAULT NULL,
    unique_name text DEFAULT NULL,
    unique_until text DEFAULT 'ended',
    on_conflict text DEFAULT 'keep',
    weight integer DEFAULT 1,
    tags text[] DEFAULT '{}',
    after uuid[] DEFAULT '{}',
    on_failure text DEFAULT 'cancel',
    max_attempts integer DEFAULT NULL,
    max_retries integer DEFAULT NULL,
    backoff interval DEFAULT NULL,
    max_backoff interval DEFAULT NULL,
    timeout interval DEFAULT NULL,
    notify boolean DEFAULT true
) RETURNS uuid LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    ten_years CONSTANT bigint := 10::bigint * 366 * 86400 * 1000000;
    wrong text;
    tag text;
    q interval_queue_task_queue;
    holder record;
    now bigint;
    starts bigint := 0;
    added bigint;
    policy json;
    state text := 'added';
    tries integer := 0;
BEGIN
    IF octet_length(add_task.queue) > 200 OR add_task.queue IS NULL THEN
        RAISE EXCEPTION 'queue of % bytes: give a name of 1 to 200', coalesce(octet_length(add_task.queue), 0)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM interval_queue_task_check('queue', add_task.queue, 200);
    PERFORM interval_queue_task_check('kind', coalesce(add_task.kind, ''), 200);
    PERFORM interval_queue_task_check('key', add_task.key, 200);
    PERFORM interval_queue_task_check('unique name', add_task.unique_name, 200);
    FOREACH tag IN ARRAY coalesce(add_task.tags, '{}') LOOP
        PERFORM interval_queue_task_check('tag', coalesce(tag, ''), 100);
    END LOOP;
    wrong := CASE
        WHEN add_task.payload IS NULL THEN 'payload NULL: give JSON, such as ''null'''
        WHEN add_task.priority IS NULL OR abs(add_task.priority) > 100 THEN
            format('priority %s: give -100 to 100', add_task.priority)
        WHEN add_task.weight IS NULL OR add_task.weight NOT BETWEEN 1 AND 1000 THEN
            format('weight %s: give 1 to 1000 slots', add_task.weight)
        WHEN add_task.ordered IS NULL THEN 'ordered NULL: give true or false'
        WHEN add_task.ordered AND add_task.key IS NULL THEN
            'an ordered task needs a key: tasks of one key run in order'
        WHEN cardinality(add_task.tags) > 32 THEN format('%s tags: give at most 32', cardinality(add_task.tags))
        WHEN cardinality(add_task.after) > 10000 THEN
            format('%s upstreams: name at most 10000', cardinality(add_task.after))
        WHEN add_task.id = ANY (add_task.after) THEN format('task %s waits for itself: name earlier tasks', add_task.id)
        WHEN (SELECT count(*) <> count(DISTINCT up) FROM unnest(add_task.after) AS up) THEN
            'the task names an upstream twice, or none: name each once'
        WHEN add_task.on_failure IS NULL OR add_task.on_failure NOT IN ('cancel', 'run', 'wait') THEN
            format('%s is nothing to do on a failure: take cancel, run or wait', to_json(add_task.on_failure))
        WHEN add_task.unique_until IS NULL OR add_task.unique_until NOT IN ('ended', 'leased') THEN
            format('unique_until %s: take ended or leased', to_json(add_task.unique_until))
        WHEN add_task.on_conflict = 'replace' THEN
            'on_conflict "replace" would wait for workers: take keep or refuse in SQL, or add the task by a program'
        WHEN add_task.on_conflict IS NULL OR add_task.on_conflict NOT IN ('keep', 'refuse') THEN
            format('on_conflict %s: take keep or refuse', to_json(add_task.on_conflict))
        WHEN add_task.delay IS NOT NULL AND add_task.not_before IS NOT NULL THEN 'delay and not_before: give one of them'
        WHEN interval_queue_task_micros(add_task.delay) NOT BETWEEN 0 AND ten_years THEN format('delay %s: give at most ten years', add_task.delay)
        WHEN add_task.not_before < 'epoch' OR add_task.not_before >= '2200-01-01' THEN
            format('not_before %s: give an instant from 1970 to 2199', add_task.not_before)
        WHEN add_task.deadline < 'epoch' OR add_task.deadline >= '2200-01-01' THEN
            format('deadline %s: give an instant from 1970 to 2199', add_task.deadline)
        WHEN add_task.max_attempts NOT BETWEEN 1 AND 1000000 THEN
            format('max attempts %s: give 1 to 1000000; 1 runs it at most once', add_task.max_attempts)
        WHEN add_task.max_retries NOT BETWEEN 0 AND 1000000 THEN
            format('max retries %s: give 0 to 1000000', add_task.max_retries)
        WHEN interval_queue_task_micros(add_task.timeout) <= 0 THEN 'timeout 0: give the run some time, or no time-out'
        WHEN interval_queue_task_micros(coalesce(add_task.backoff, '10 s')) < 0
            OR interval_queue_task_micros(coalesce(add_task.backoff, '10 s')) > interval_queue_task_micros(coalesce(add_task.max_backoff, '1 h'))
            OR interval_queue_task_micros(add_task.max_backoff) > ten_years THEN
            format('backoff %s up to %s: the first wait is at most the longest, and that at most ten years',
                coalesce(add_task.backoff, '10 s'), coalesce(add_task.max_backoff, '1 h'))
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF coalesce(add_task.max_attempts::text, add_task.max_retries::text, add_task.backoff::text,
        add_task.max_backoff::text, add_task.timeout::text) IS NOT NULL THEN
        policy := json_build_object(
            'max_attempts', coalesce(add_task.max_attempts, 5), 'max_retries', coalesce(add_task.max_retries, 1000),
            'backoff', interval_queue_task_micros(coalesce(add_task.backoff, '10 s')),
            'max_backoff', interval_queue_task_micros(coalesce(add_task.max_backoff, '1 h')), 'timeout', interval_queue_task_micros(add_task.timeout)
        );
    END IF;
    IF add_task.id IS NULL THEN
        -- Version 7: the time in milliseconds, and the rest at random.
        add_task.id := encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
            substring(int8send(interval_queue_task_micros(clock_timestamp()) / 1000) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid;
    END IF;

    SELECT * INTO q FROM interval_queue_task_queue WHERE name = add_task.queue;
    IF NOT FOUND THEN
        now := interval_queue_task_micros(clock_timestamp());
        INSERT INTO interval_queue_task_queue (name, settings, paused, incarnation, ticks, seen, latest, unswept)
        VALUES (add_task.queue, '{}', false, now, 0, now, now, false) ON CONFLICT DO NOTHING;
        SELECT * INTO STRICT q FROM interval_queue_task_queue WHERE name = add_task.queue;
    END IF;
    IF octet_length(add_task.payload::text) > coalesce((q.settings ->> 'max_payload')::bigint, 1048576) THEN
        RAISE EXCEPTION 'the payload of task % has % bytes: this queue stores at most %, so store what is large elsewhere and add where it is',
            add_task.id, octet_length(add_task.payload::text), coalesce((q.settings ->> 'max_payload')::bigint, 1048576)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    LOOP
        PERFORM FROM interval_queue_task AS t WHERE t.queue = q.number AND t.id = add_task.id;
        IF FOUND THEN
            RETURN add_task.id;
        END IF;
        IF add_task.unique_name IS NOT NULL THEN
            SELECT t.id, t.state INTO holder FROM interval_queue_task AS t
            WHERE t.queue = q.number AND t.unique_name = add_task.unique_name AND t.holds_name;
            IF FOUND AND add_task.on_conflict = 'refuse' THEN
                RAISE EXCEPTION 'task % has the unique name %, and is %', holder.id, to_json(add_task.unique_name), holder.state
                    USING ERRCODE = 'unique_violation';
            ELSIF FOUND THEN
                RETURN holder.id;
            END IF;
        END IF;
        -- One that is waited for cannot go until this is committed.
        SELECT up INTO holder FROM unnest(add_task.after) AS up WHERE up <> ALL (ARRAY(
            SELECT t.id FROM interval_queue_task AS t
            WHERE t.queue = q.number AND t.id = ANY (add_task.after) AND t.state <> 'purged' FOR KEY SHARE
        )) LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'task % waits for %, which is not stored here: name one that is there', add_task.id, holder.up
                USING ERRCODE = 'foreign_key_violation';
        END IF;
        now := interval_queue_task_micros(clock_timestamp());
        added := greatest(now, q.latest);
        IF interval_queue_task_micros(add_task.delay) > 0 THEN
            starts := now + interval_queue_task_micros(add_task.delay);
        ELSIF add_task.not_before IS NOT NULL THEN
            starts := interval_queue_task_micros(add_task.not_before);
        END IF;
        IF coalesce(cardinality(add_task.after), 0) = 0 AND starts > now THEN
            state := 'scheduled';
        ELSIF coalesce(cardinality(add_task.after), 0) = 0 AND add_task.key IS NULL THEN
            state := 'ready';
        END IF;
        INSERT INTO interval_queue_task (
            queue, id, state, kind, priority, due, added, not_before, key, ordered, unique_name, unique_until, holds_name,
            weight, tags, deadline, policy, has_edges, payload
        ) VALUES (
            q.number, add_task.id, state, add_task.kind, add_task.priority,
            greatest(added, starts) - add_task.priority * coalesce((q.settings ->> 'ageing')::bigint, 86400000000),
            added, starts, add_task.key, add_task.ordered, add_task.unique_name,
            CASE WHEN add_task.unique_name IS NOT NULL THEN add_task.unique_until END, add_task.unique_name IS NOT NULL,
            add_task.weight, CASE WHEN cardinality(add_task.tags) > 0 THEN to_jsonb(add_task.tags) END,
            interval_queue_task_micros(add_task.deadline), policy, coalesce(cardinality(add_task.after), 0) > 0, add_task.payload
        ) ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        -- Somebody else was quicker to add it, or one with its name.
        tries := tries + 1;
        IF tries > 5 THEN
            RAISE EXCEPTION 'others add tasks with the unique name % all the time: try again', to_json(add_task.unique_name)
                USING ERRCODE = 'serialization_failure';
        END IF;
    END LOOP;
    INSERT INTO interval_queue_task_edge (queue, up, down, on_failure, state, life)
    SELECT q.number, up, add_task.id, add_task.on_failure, 'new', 0 FROM unnest(add_task.after) AS up;
    INSERT INTO interval_queue_task_counted (queue, kinds, counted, more)
    VALUES (q.number, ARRAY[add_task.kind, add_task.kind], ARRAY[state, 'ever_added'], ARRAY[1, 1]);
    IF add_task.notify THEN
        PERFORM pg_notify(('tasks ' || current_schema())::name::text, add_task.queue);
    END IF;
    RETURN add_task.id;
END
$$;

-- Ends of runs that transactions have settled which are not committed yet: each is gone with the commit.
CREATE TABLE interval_queue_task_settled (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue bigint NOT NULL,
    id uuid NOT NULL,
    worker uuid NOT NULL,
    incarnation bigint NOT NULL,
    attempt bigint NOT NULL,
    result json,
    error text COLLATE "C"
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- The end itself, when the transaction commits: until then it has locked nothing that a worker waits for. From here to the
-- end of the commit it is the only one at the queue, as each command of a worker is.
CREATE FUNCTION interval_queue_task_end() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    x record;
    name text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema()), (NEW.queue % 2147483647)::integer);
    DELETE FROM interval_queue_task_settled WHERE number = NEW.number;
    UPDATE interval_queue_task AS t SET
        state = CASE WHEN NEW.error IS NULL THEN 'done' WHEN t.stop = 'cancel' THEN 'cancelled' ELSE 'failed' END,
        error = CASE
            WHEN NEW.error IS NULL THEN NULL
            WHEN t.stop = 'cancel' THEN 'it was cancelled'
            WHEN t.stop = 'deadline' THEN 'its deadline has passed'
            ELSE NEW.error
        END,
        failures = t.failures
            + CASE WHEN NEW.error IS NOT NULL AND coalesce(t.stop, 'release') = 'release' THEN 1 ELSE 0 END,
        result = coalesce(NEW.result, t.result),
        ended = interval_queue_task_micros(clock_timestamp()), ended_tick = q.ticks,
        holds_name = false, parked = false, stop = NULL, told = false
    FROM interval_queue_task_queue AS q
    WHERE q.number = NEW.queue AND t.queue = NEW.queue AND t.id = NEW.id AND t.state = 'leased' AND t.worker = NEW.worker
        AND t.incarnation = NEW.incarnation AND t.attempt = NEW.attempt
    RETURNING q.name, t.kind, t.state, t.key, t.schedule, q.settings ->> 'max_running' AS max_running INTO x;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'task % is not leased to worker % any more: it is another run''s to do', NEW.id, NEW.worker
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    INSERT INTO interval_queue_task_counted (queue, kinds, counted, more)
    VALUES (NEW.queue, ARRAY[x.kind, x.kind, x.kind], ARRAY['leased', x.state, 'ever_' || x.state], ARRAY[-1, 1, 1]);
    IF x.key IS NOT NULL OR x.schedule IS NOT NULL OR x.max_running IS NOT NULL
        OR EXISTS (SELECT FROM interval_queue_task_edge WHERE queue = NEW.queue AND up = NEW.id) THEN
        PERFORM pg_notify(('tasks ' || current_schema())::name::text, x.name);
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER interval_queue_task_settled AFTER INSERT ON interval_queue_task_settled
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION interval_queue_task_end();

-- Ends the run of a task in the transaction that calls it: done with this result, or failed for good with this error. Its
-- effects that the transaction stores and its end are kept together, or not at all: a commit fails if the token of the
-- run is not in force any more.
CREATE FUNCTION settle_task(
    queue text, id uuid, worker uuid, incarnation bigint, attempt bigint, result json DEFAULT 'null', error text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    q interval_queue_task_queue;
    most bigint;
BEGIN
    SELECT * INTO q FROM interval_queue_task_queue WHERE name = settle_task.queue;
    most := coalesce((q.settings ->> 'max_payload')::bigint, 1048576);
    IF octet_length(settle_task.result::text) > most THEN
        RAISE EXCEPTION 'the result of task % has % bytes: this queue stores at most %',
            settle_task.id, octet_length(settle_task.result::text), most USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM FROM interval_queue_task AS t
    WHERE t.queue = q.number AND t.id = settle_task.id AND t.state = 'leased' AND t.worker = settle_task.worker
        AND t.incarnation = settle_task.incarnation AND t.attempt = settle_task.attempt;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'task % is not leased to worker % at %.% any more: roll back, it is another run''s to do',
            settle_task.id, settle_task.worker, settle_task.incarnation, settle_task.attempt
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    INSERT INTO interval_queue_task_settled (queue, id, worker, incarnation, attempt, result, error)
    VALUES (
        q.number, settle_task.id, settle_task.worker, settle_task.incarnation, settle_task.attempt,
        CASE WHEN settle_task.error IS NULL AND settle_task.result::text <> 'null' THEN settle_task.result END, settle_task.error
    );
END
$$;
