-- SQLite reads an index in one direction: with the highest priority first the head of
-- a queue is its first row, however many wait behind it.
CREATE TABLE queue_by_rank (
    host_id  INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due_at   INTEGER NOT NULL,
    url_id   BLOB NOT NULL,
    PRIMARY KEY (host_id, priority DESC, due_at, url_id)
) WITHOUT ROWID;
INSERT INTO queue_by_rank SELECT host_id, priority, due_at, url_id FROM queue ORDER BY host_id, priority DESC, due_at, url_id;
DROP TABLE queue;
ALTER TABLE queue_by_rank RENAME TO queue;
