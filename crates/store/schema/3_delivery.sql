-- State shared by deliverers and readers of changes, on both engines.

-- Deliveries that a sink has accepted.
ALTER TABLE sinks ADD COLUMN delivered BIGINT NOT NULL DEFAULT 0;

-- Grows with each change of a document, so that a reader can resume from a
-- cursor: a sequence number on SQLite, the transaction id on PostgreSQL.
ALTER TABLE documents ADD COLUMN change_id BIGINT NOT NULL DEFAULT 0;
-- document_changes: what changed after a cursor
CREATE INDEX documents_changes ON documents (change_id, host_id, url_id);
