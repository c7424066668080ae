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
    begins CONSTANT text := '    IF (q.followed ->> ''until'')::bigint > now THEN
        INSERT INTO interval_queue_task_event_late (queue, at, event) VALUES (
            q.number, now, json_build_object(
                ''at'', now, ''task'', add_task.id, ''kind'', add_task.kind, ''to'', state, ''attempt'', 0
            )
        );
    END IF;
';
    name text;
    definition text;
BEGIN
    FOREACH name IN ARRAY ARRAY['interval_queue_task_end', 'add_task'] LOOP
        SELECT pg_get_functiondef(oid) INTO STRICT definition FROM pg_proc
        WHERE proname = name AND pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema());
        definition := replace(replace(definition, found, found_more), nudges, ends || nudges);
        EXECUTE replace(definition, notifies, begins || notifies);
    END LOOP;
END
$$;
