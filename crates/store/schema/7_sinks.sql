-- Sinks of several machines: when one was disabled, the node that a sink with
-- local files belongs to, and when a process last served it.

ALTER TABLE sinks ADD COLUMN disabled_at BIGINT;   -- NULL: enabled, and nothing was missed
ALTER TABLE sinks ADD COLUMN node TEXT;            -- NULL: any node may serve it
ALTER TABLE sinks ADD COLUMN last_seen BIGINT;     -- by the process that serves it

-- When is unknown: all documents count as missed.
UPDATE sinks SET disabled_at = created_at WHERE enabled = 0;
