CREATE TABLE interval_queue (name text COLLATE "C" PRIMARY KEY, record json NOT NULL);
CREATE TABLE interval_queue_schema (version integer NOT NULL);
INSERT INTO interval_queue_schema VALUES (1);
