-- Indexes by which expired rows are found, on both engines: pruning reads the rows
-- that it deletes, and no others.
CREATE INDEX feed_fetch_log_age ON feed_fetch_log (started_at);
CREATE INDEX seen_titles_age ON seen_titles (seen_at);
CREATE INDEX tasks_age ON tasks (created_at);
CREATE INDEX idempotency_age ON idempotency (created_at);
CREATE INDEX audit_age ON audit (at);
CREATE INDEX runs_age ON runs (started_at);
