CREATE TABLE interval_queue_task_times (
    -- How long the runs of a kind waited and took in an hour, counted from 1970: of each length how many, and the sum.
    queue INTEGER NOT NULL,
    kind TEXT NOT NULL,
    hour INTEGER NOT NULL,
    cell INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (queue, kind, hour, cell)
) STRICT, WITHOUT ROWID;
CREATE INDEX interval_queue_task_times_hour ON interval_queue_task_times (queue, hour);

-- What a worker has room for. None of both: any task.
ALTER TABLE interval_queue_task_worker ADD COLUMN at_least INTEGER;
ALTER TABLE interval_queue_task_worker ADD COLUMN room INTEGER;
