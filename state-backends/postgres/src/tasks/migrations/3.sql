-- Tasks that came into another state while somebody followed. A row is written with the lock of the queue, so that a
-- command that has it alone sees all rows that come before those still to come.
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
    event json NOT NULL,
    -- When it was noted. Its age is counted from the commit, when others can see it first.
    noted bigint NOT NULL DEFAULT interval_queue_task_micros(clock_timestamp())
) WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
CREATE FUNCTION interval_queue_task_event_comes() RETURNS trigger LANGUAGE plpgsql
    SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema()), (NEW.queue % 2147483647)::integer);
    DELETE FROM interval_queue_task_event_late WHERE number = NEW.number;
    INSERT INTO interval_queue_task_event (queue, at, event) VALUES (
        NEW.queue, NEW.at + greatest(interval_queue_task_micros(clock_timestamp()) - NEW.noted, 0), NEW.event
    );
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER interval_queue_task_event_late AFTER INSERT ON interval_queue_task_event_late
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION interval_queue_task_event_comes();

-- Since when and until when events are noted.
ALTER TABLE interval_queue_task_queue ADD COLUMN followed json;

-- The functions that tasks are added and settled by in SQL are the same as before, and note the event.
DO $$
DECLARE
    found CONSTANT text := 'AS max_running INTO x;';
    found_more CONSTANT text := 'AS max_running, t.error, (q.followed ->> ''until'')::bigint AS until INTO x;';
    nudges CONSTANT text := '    IF x.key IS NOT NULL';
    ends CONSTANT text := '    IF x.until > x.ended THEN
        INSERT INTO interval_queue_task_event (queue, at, event) VALUES (
            NEW.queue, x.ended, json_build_object(
                ''at'', x.ended, ''task'', NEW.id, ''kind'', x.kind, ''from'', ''leased'', ''to'', x.state,
                ''attempt'', NEW.attempt, ''worker'', NEW.worker, ''error'', x.error
            )
        );
    END IF;
';
    notifies CONSTANT text := '    IF add_task.notify THEN';
    begins CONSTANT text := '    IF now BETWEEN (q.followed ->> ''from'')::bigint AND (q.followed ->> ''until'')::bigint - 1 THEN
        INSERT INTO interval_queue_task_event_late (queue, at, event) VALUES (
            q.number, now, json_build_object(
                ''at'', now, ''task'', add_task.id, ''kind'', add_task.kind, ''to'', state, ''attempt'', 0
            )
        );
    END IF;
';
    name text;
    definition text;
    changed text;
BEGIN
    FOREACH name IN ARRAY ARRAY['interval_queue_task_end', 'add_task'] LOOP
        SELECT pg_get_functiondef(oid) INTO STRICT definition FROM pg_proc
        WHERE proname = name AND pronargs = CASE name WHEN 'add_task' THEN 23 ELSE 0 END AND pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema());
        changed := replace(replace(definition, found, found_more), nudges, ends || nudges);
        changed := replace(changed, notifies, begins || notifies);
        IF changed = definition THEN
            RAISE EXCEPTION 'the function % is not as this software makes it', name;
        END IF;
        EXECUTE changed;
    END LOOP;
END
$$;

-- The roles that may use the tables that were there may use the new ones, too.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT (g).privilege_type AS what, CASE (g).grantee WHEN 0 THEN 'PUBLIC' ELSE (g).grantee::regrole::text END AS whom
        FROM (SELECT aclexplode(relacl) AS g FROM pg_class WHERE oid = 'interval_queue_task'::regclass) AS all_of_them
    LOOP
        EXECUTE format(
            'GRANT %s ON interval_queue_task_times, interval_queue_task_event, interval_queue_task_event_late TO %s',
            granted.what, granted.whom
        );
    END LOOP;
END
$$;
