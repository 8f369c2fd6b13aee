DROP INDEX feed_fetch_log_age, seen_titles_age, tasks_age, idempotency_age, audit_age, runs_age, events_order;
CREATE INDEX events_order ON events USING brin (event_id, at);
ALTER TABLE count_changes RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_insert_threshold, autovacuum_vacuum_cost_delay);
