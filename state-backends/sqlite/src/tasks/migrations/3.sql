CREATE TABLE interval_queue_task_event (
    -- Tasks that came into another state while somebody followed, as JSON. No number is given twice.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL CHECK (json_valid(event))
) STRICT;
CREATE INDEX interval_queue_task_event_queue ON interval_queue_task_event (queue, number);

-- JSON: since when and until when events are noted.
ALTER TABLE interval_queue_task_queue ADD COLUMN followed TEXT CHECK (json_valid(followed));
