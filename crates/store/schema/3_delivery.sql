-- What deliverers and pullers share, on both engines.

-- How many orders a sink has accepted.
ALTER TABLE sinks ADD COLUMN delivered BIGINT NOT NULL DEFAULT 0;

-- Grows with each change of a document, so that a reader can go on where it
-- was: a number on SQLite, the transaction on PostgreSQL.
ALTER TABLE documents ADD COLUMN change_id BIGINT NOT NULL DEFAULT 0;
-- document_changes: what changed after a cursor
CREATE INDEX documents_changes ON documents (change_id, host_id, url_id);
