-- How long the runs of a kind waited and took in an hour, counted from 1970: of each length how many, and the sum. What
-- is not added up yet is in interval_queue_task_counted, as 'took HOUR CELL'.
CREATE TABLE interval_queue_task_times (
    queue bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    hour bigint NOT NULL,
    cell bigint NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (queue, kind, hour, cell)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX interval_queue_task_times_hour ON interval_queue_task_times (queue, hour);

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
    RETURNING q.name, t.kind, t.state, t.key, t.schedule, t.leased, t.ended, q.settings ->> 'max_running' AS max_running INTO x;
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
    IF x.key IS NOT NULL OR x.schedule IS NOT NULL OR x.max_running IS NOT NULL
        OR EXISTS (SELECT FROM interval_queue_task_edge WHERE queue = NEW.queue AND up = NEW.id) THEN
        PERFORM pg_notify(('tasks ' || current_schema())::name::text, x.name);
    END IF;
    RETURN NULL;
END
$$;

-- What a worker has room for. None of both: any task.
ALTER TABLE interval_queue_task_worker ADD COLUMN at_least bigint;
ALTER TABLE interval_queue_task_worker ADD COLUMN room bigint;
