-- Retention, on PostgreSQL only.

-- tail and retention: the space of deleted events is used again, so rows are not
-- stored in the order of their ids, which a BRIN index needs.
DROP INDEX events_order;
CREATE INDEX events_order ON events (event_id);

-- Every row is deleted within seconds: pages are reused only if vacuum is as quick.
ALTER TABLE count_changes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
