BEGIN;
CREATE SCHEMA IF NOT EXISTS "interval_queue";
SET LOCAL search_path TO "interval_queue", pg_temp;
\ir pace/migrations/1.sql

UPDATE interval_queue_schema SET version = 1;
COMMIT;
BEGIN;
CREATE SCHEMA IF NOT EXISTS "interval_queue";
SET LOCAL search_path TO "interval_queue", pg_temp;
\ir tasks/migrations/1.sql

CREATE INDEX IF NOT EXISTS interval_queue_task_name ON interval_queue_task (queue, unique_name) WHERE holds_name;
CREATE INDEX IF NOT EXISTS interval_queue_task_added ON interval_queue_task (queue, due, added, position, id) WHERE state = 'added';
CREATE INDEX IF NOT EXISTS interval_queue_task_scheduled ON interval_queue_task (queue, not_before, added, position, id) WHERE state = 'scheduled';
CREATE INDEX IF NOT EXISTS interval_queue_task_ready ON interval_queue_task (queue, kind, priority, due, added, position, id) WHERE state = 'ready';
CREATE INDEX IF NOT EXISTS interval_queue_task_leased ON interval_queue_task (queue, worker, id) WHERE state = 'leased';
CREATE INDEX IF NOT EXISTS interval_queue_task_leased_key ON interval_queue_task (queue, key) WHERE key IS NOT NULL AND state = 'leased';
CREATE INDEX IF NOT EXISTS interval_queue_task_stop ON interval_queue_task (queue, worker, id) WHERE stop IS NOT NULL;
CREATE INDEX IF NOT EXISTS interval_queue_task_holder ON interval_queue_task (queue, key, ordered, state, line, added, position, id) WHERE holds_key;
CREATE INDEX IF NOT EXISTS interval_queue_task_ready_holder ON interval_queue_task (queue, kind, id) WHERE holds_key AND state = 'ready';
CREATE INDEX IF NOT EXISTS interval_queue_task_line ON interval_queue_task (queue, key, unserved, line, added, position, id) WHERE state = 'blocked';
CREATE INDEX IF NOT EXISTS interval_queue_task_unserved ON interval_queue_task (queue, kind, id) WHERE unserved;
CREATE INDEX IF NOT EXISTS interval_queue_task_deadline ON interval_queue_task (queue, deadline, id) WHERE deadline IS NOT NULL AND stop IS NULL AND ended IS NULL;
CREATE INDEX IF NOT EXISTS interval_queue_task_unnotified ON interval_queue_task (queue, id) WHERE NOT notified AND ended IS NOT NULL;
CREATE INDEX IF NOT EXISTS interval_queue_task_ended ON interval_queue_task (queue, state, ended, id) WHERE notified AND NOT retained;
CREATE INDEX IF NOT EXISTS interval_queue_task_ended_other ON interval_queue_task (queue, ended, id) WHERE ended IS NOT NULL AND (NOT notified OR retained);
CREATE INDEX IF NOT EXISTS interval_queue_task_by_added ON interval_queue_task (queue, added, id);
DO $$ BEGIN ALTER TABLE interval_queue_task ADD PRIMARY KEY (queue, id); EXCEPTION WHEN invalid_table_definition THEN NULL; END $$;
UPDATE interval_queue_task_schema SET version = 5;
COMMIT;
