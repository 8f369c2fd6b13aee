-- The frontier on PostgreSQL: hosts first. `hosts` is small and hot, `queue`
-- narrow with one row for each schedulable URL, `urls` wide and cold. Every
-- statement is keyed by host_id, so the tables can be partitioned by its hash.

-- The one clock that all machines share, in milliseconds since 1970.
CREATE FUNCTION tidings_now() RETURNS BIGINT LANGUAGE sql VOLATILE
    AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT $$;

CREATE TABLE hosts (
    host_id       BIGINT PRIMARY KEY,      -- from the hash of host_key
    head_due      BIGINT NOT NULL DEFAULT 9223372036854775807,
    gate_at       BIGINT NOT NULL DEFAULT 0,   -- politeness or lease: no start before this
    blocked_until BIGINT NOT NULL DEFAULT 0,   -- Retry-After, or blocked by an operator
    ready_at      BIGINT GENERATED ALWAYS AS (GREATEST(head_due, gate_at, blocked_until)) STORED,
    last_start_at BIGINT NOT NULL DEFAULT 0,
    lease_until   BIGINT NOT NULL DEFAULT 0,   -- no lease of this host outlives it
    delay_ms      INTEGER NOT NULL,
    errors        INTEGER NOT NULL DEFAULT 0,  -- in a row
    head_priority SMALLINT NOT NULL DEFAULT 0, -- 0: nothing is queued
    in_flight     SMALLINT NOT NULL DEFAULT 0,
    max_in_flight SMALLINT NOT NULL,
    host_key      TEXT NOT NULL,
    block_reason  TEXT
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- claim: per priority, the hosts that have been ready longest. Blocked, leased
-- and idle hosts sort behind now and are never read.
CREATE INDEX hosts_ready ON hosts (head_priority, ready_at) WHERE head_priority > 0;

CREATE TABLE urls (
    host_id         BIGINT NOT NULL,
    discovered_at   BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    last_fetched_at BIGINT,
    source_id       BIGINT NOT NULL,
    url_id          BYTEA NOT NULL,            -- first 16 bytes of the url key
    key_tail        BYTEA NOT NULL,            -- the other 16
    attempts        INTEGER NOT NULL DEFAULT 0,
    fetch_count     INTEGER NOT NULL DEFAULT 0,
    status          SMALLINT NOT NULL,         -- 0 pending, 2 fetched, 3 failed, 4 dead; 1 (fetching) is a leased queue row
    origin          SMALLINT NOT NULL,
    priority        SMALLINT NOT NULL,
    depth           SMALLINT NOT NULL,
    retry_count     SMALLINT NOT NULL DEFAULT 0,
    norm_v          SMALLINT NOT NULL,
    url             TEXT NOT NULL,
    reason          TEXT,
    last_error      TEXT,
    parent_url      TEXT,
    item            TEXT,                      -- the feed item, as JSON
    etag            TEXT,
    last_modified   TEXT,
    content_hash    BYTEA,
    PRIMARY KEY (host_id, url_id)              -- host-local: the URLs of one page hit the same leaf pages
) WITH (fillfactor = 85);

CREATE TABLE queue (
    host_id  BIGINT NOT NULL,
    due_at   BIGINT NOT NULL,                  -- or the end of the lease
    owner    BIGINT,                           -- the worker that holds the lease
    attempt  INTEGER NOT NULL,                 -- the fencing number
    priority SMALLINT NOT NULL,                -- negated while it is leased
    crashes  SMALLINT NOT NULL DEFAULT 0,      -- leases that expired without completion
    url_id   BYTEA NOT NULL,
    PRIMARY KEY (host_id, url_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- the best URL of a host: one index probe for each priority
CREATE INDEX queue_head ON queue (host_id, priority, due_at);

CREATE TABLE events (
    event_id BIGINT GENERATED ALWAYS AS IDENTITY,
    host_id  BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    url_id   BYTEA NOT NULL,
    kind     TEXT NOT NULL,
    detail   TEXT NOT NULL
);
-- explain: the history of one URL
CREATE INDEX events_url ON events (host_id, url_id);
-- tail and retention: rows are stored in insertion order
CREATE INDEX events_order ON events USING brin (event_id, at);

-- Stats without counting: every batch appends counter changes, `maintain` rolls them up.
CREATE TABLE counts (
    source_id BIGINT NOT NULL,
    origin    SMALLINT NOT NULL,
    status    SMALLINT NOT NULL,
    n         BIGINT NOT NULL,
    PRIMARY KEY (source_id, origin, status)
);
CREATE TABLE count_changes (
    source_id BIGINT NOT NULL,
    n         BIGINT NOT NULL,
    origin    SMALLINT NOT NULL,
    status    SMALLINT NOT NULL
);

-- For ad-hoc queries, with the column names of the reference systems.
CREATE VIEW url_frontier AS
SELECT encode(u.url_id, 'hex')::uuid AS id, u.url, encode(u.url_id || u.key_tail, 'hex') AS url_hash,
       h.host_key AS host, u.source_id,
       (ARRAY['feed','sitemap','spider','manual','api','agent'])[u.origin + 1] AS origin,
       u.parent_url, u.depth, u.priority,
       CASE WHEN q.owner IS NOT NULL THEN 'fetching'
            ELSE (ARRAY['pending','fetching','fetched','failed','dead'])[u.status + 1] END AS status,
       u.reason, to_timestamp(q.due_at / 1000.0) AS next_fetch_at,
       to_timestamp(u.last_fetched_at / 1000.0) AS last_fetched_at, u.fetch_count,
       encode(u.content_hash, 'hex') AS content_hash, u.etag, u.last_modified, u.retry_count, u.last_error,
       to_timestamp(u.discovered_at / 1000.0) AS discovered_at,
       to_timestamp(u.discovered_at / 1000.0) AS created_at,
       to_timestamp(u.updated_at / 1000.0) AS updated_at
FROM urls u JOIN hosts h USING (host_id) LEFT JOIN queue q USING (host_id, url_id);

CREATE VIEW host_state AS
SELECT h.host_key AS host, to_timestamp(nullif(h.last_start_at, 0) / 1000.0) AS last_fetch_at,
       h.delay_ms AS min_delay_ms, h.in_flight, h.max_in_flight, h.errors,
       CASE WHEN h.blocked_until = 9223372036854775807 THEN 'infinity'
            ELSE to_timestamp(nullif(h.blocked_until, 0) / 1000.0) END AS blocked_until,
       h.block_reason, r.body AS robots_txt, to_timestamp(r.fetched_at / 1000.0) AS robots_fetched_at,
       24 AS robots_ttl_hours
FROM hosts h LEFT JOIN robots r USING (host_id);

CREATE VIEW feed_state AS
SELECT feed_id, source_id, kind, url AS feed_url, to_timestamp(last_polled_at / 1000.0) AS last_polled_at,
       etag AS last_etag, last_modified, item_count AS last_item_count, consecutive_errors, last_error,
       error_class AS last_error_type, to_timestamp(next_poll_at / 1000.0) AS next_poll_at
FROM feeds;

CREATE VIEW all_counts AS
SELECT source_id, origin, status, n FROM counts UNION ALL SELECT source_id, origin, status, n FROM count_changes;

-- Estimated: counting ten million hosts takes too long.
CREATE VIEW host_count AS
SELECT CASE WHEN c.reltuples < 10000 THEN (SELECT count(*) FROM hosts) ELSE c.reltuples::BIGINT END AS n
FROM pg_class c WHERE c.oid = 'hosts'::regclass;
