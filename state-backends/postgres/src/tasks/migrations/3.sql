-- Tasks that came into another state while somebody followed. A row is written with the lock of the queue, so that whoever
-- has it alone sees all that come before those that are still to come.
CREATE TABLE interval_queue_task_event (
    number bigint GENERATED ALWAYS AS IDENTITY,
    queue bigint NOT NULL,
    at bigint NOT NULL,
    event json NOT NULL,
    PRIMARY KEY (queue, number)
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Those of tasks that are added, which is done without the lock: it is taken when the transaction commits.
CREATE TABLE interval_queue_task_event_late (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue bigint NOT NULL,
    at bigint NOT NULL,
    event json NOT NULL
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
CREATE FUNCTION interval_queue_task_event_comes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema()), (NEW.queue % 2147483647)::integer);
    DELETE FROM interval_queue_task_event_late WHERE number = NEW.number;
    INSERT INTO interval_queue_task_event (queue, at, event) VALUES (NEW.queue, NEW.at, NEW.event);
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER interval_queue_task_event_late AFTER INSERT ON interval_queue_task_event_late
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION interval_queue_task_event_comes();

-- Since when and until when events are noted.
ALTER TABLE interval_queue_task_queue ADD COLUMN followed json;

CREATE OR REPLACE FUNCTION interval_queue_task_end() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    x record;
    ms bigint;
    cell integer;
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
    RETURNING q.name, t.kind, t.state, t.key, t.schedule, t.leased, t.ended, t.error, q.settings ->> 'max_running' AS max_running,
        (q.followed ->> 'until')::bigint AS until INTO x;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'task % is not leased to worker % any more: it is another run''s to do', NEW.id, NEW.worker
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    ms := greatest(x.ended - coalesce(x.leased, x.ended), 0) / 1000;
    -- The numbers of runs begin at 33: how many binary digits the length has, and behind them the sum.
    cell := 33 + least(length(ltrim(ms::bit(64)::text, '0')), 31);
    INSERT INTO interval_queue_task_counted (queue, kinds, counted, more)
    VALUES (
        NEW.queue, ARRAY[x.kind, x.kind, x.kind, x.kind, x.kind],
        ARRAY[
            'leased', x.state, 'ever_' || x.state, format('took %s %s', x.ended / 3600000000, cell),
            format('took %s 65', x.ended / 3600000000)
        ],
        ARRAY[-1, 1, 1, 1, ms]
    );
    IF x.until > x.ended THEN
        INSERT INTO interval_queue_task_event (queue, at, event) VALUES (
            NEW.queue, x.ended, json_build_object(
                'at', x.ended, 'task', NEW.id, 'kind', x.kind, 'from', 'leased', 'to', x.state, 'attempt', NEW.attempt,
                'worker', NEW.worker, 'error', x.error
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

-- The same function as before, which notes the event.
DO $$
DECLARE
    notify CONSTANT text := '    IF add_task.notify THEN';
    note CONSTANT text := '
    IF (q.followed ->> ''until'')::bigint > now THEN
        INSERT INTO interval_queue_task_event_late (queue, at, event) VALUES (
            q.number, now, json_build_object(
                ''at'', now, ''task'', add_task.id, ''kind'', add_task.kind, ''to'', state, ''attempt'', 0
            )
        );
    END IF;
';
BEGIN
    EXECUTE (
        SELECT replace(pg_get_functiondef(oid), notify, note || notify) FROM pg_proc
        WHERE proname = 'add_task' AND pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
    );
END
$$;
