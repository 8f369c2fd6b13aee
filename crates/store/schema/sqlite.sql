-- The frontier on SQLite: the same tables as on PostgreSQL. Where one B-tree can
-- be both table and index, it is.

CREATE TABLE hosts (
    host_id       INTEGER PRIMARY KEY,     -- from the hash of host_key
    head_due      INTEGER NOT NULL DEFAULT 9223372036854775807,
    gate_at       INTEGER NOT NULL DEFAULT 0,
    blocked_until INTEGER NOT NULL DEFAULT 0,
    ready_at      INTEGER GENERATED ALWAYS AS (MAX(head_due, gate_at, blocked_until)) STORED,
    last_start_at INTEGER NOT NULL DEFAULT 0,
    lease_until   INTEGER NOT NULL DEFAULT 0,
    delay_ms      INTEGER NOT NULL,
    errors        INTEGER NOT NULL DEFAULT 0,
    head_priority INTEGER NOT NULL DEFAULT 0,
    in_flight     INTEGER NOT NULL DEFAULT 0,
    max_in_flight INTEGER NOT NULL,
    host_key      TEXT NOT NULL,
    block_reason  TEXT
);
-- claim: per priority, the hosts that have been ready longest
CREATE INDEX hosts_ready ON hosts (head_priority, ready_at) WHERE head_priority > 0;

CREATE TABLE urls (
    host_id         INTEGER NOT NULL,
    url_id          BLOB NOT NULL,
    discovered_at   INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    last_fetched_at INTEGER,
    due_at          INTEGER,               -- with priority its position in the queue; NULL: not scheduled
    source_id       INTEGER NOT NULL,
    key_tail        BLOB NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    fetch_count     INTEGER NOT NULL DEFAULT 0,
    status          INTEGER NOT NULL,
    origin          INTEGER NOT NULL,
    priority        INTEGER NOT NULL,
    depth           INTEGER NOT NULL,
    retry_count     INTEGER NOT NULL DEFAULT 0,
    norm_v          INTEGER NOT NULL,
    url             TEXT NOT NULL,
    reason          TEXT,
    last_error      TEXT,
    parent_url      TEXT,
    item            TEXT,
    etag            TEXT,
    last_modified   TEXT,
    content_hash    BLOB,
    PRIMARY KEY (host_id, url_id)
) WITHOUT ROWID;

-- The queue order of each host's URLs, and nothing else: every changed row costs a
-- page in the log and one in the file, so a claim must not touch it.
CREATE TABLE queue (
    host_id  INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due_at   INTEGER NOT NULL,
    url_id   BLOB NOT NULL,
    PRIMARY KEY (host_id, priority, due_at, url_id)
) WITHOUT ROWID;

-- URLs being fetched: small, so its pages are shared by all claims.
CREATE TABLE leases (
    host_id   INTEGER NOT NULL,
    url_id    BLOB NOT NULL,
    due_at    INTEGER NOT NULL,            -- the end of the lease
    owner     INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,            -- the fencing number
    crashes   INTEGER NOT NULL,            -- earlier leases that expired without completion
    priority  INTEGER NOT NULL,            -- with queued_at its position in the queue
    queued_at INTEGER NOT NULL,
    PRIMARY KEY (host_id, url_id)
) WITHOUT ROWID;

CREATE TABLE events (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    host_id  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    url_id   BLOB NOT NULL,
    kind     TEXT NOT NULL,
    detail   TEXT NOT NULL
);
CREATE INDEX events_url ON events (host_id, url_id);

CREATE TABLE counts (
    source_id INTEGER NOT NULL,
    origin    INTEGER NOT NULL,
    status    INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    PRIMARY KEY (source_id, origin, status)
) WITHOUT ROWID;

CREATE VIEW url_frontier AS
SELECT lower(hex(u.url_id)) AS id, u.url, lower(hex(u.url_id) || hex(u.key_tail)) AS url_hash,
       h.host_key AS host, u.source_id,
       CASE u.origin WHEN 0 THEN 'feed' WHEN 1 THEN 'sitemap' WHEN 2 THEN 'spider' WHEN 3 THEN 'manual' WHEN 4 THEN 'api' ELSE 'agent' END AS origin,
       u.parent_url, u.depth, u.priority,
       CASE WHEN q.owner IS NOT NULL THEN 'fetching'
            ELSE CASE u.status WHEN 0 THEN 'pending' WHEN 2 THEN 'fetched' WHEN 3 THEN 'failed' ELSE 'dead' END END AS status,
       u.reason, datetime(coalesce(q.due_at, u.due_at) / 1000, 'unixepoch') AS next_fetch_at,
       datetime(u.last_fetched_at / 1000, 'unixepoch') AS last_fetched_at, u.fetch_count,
       lower(hex(u.content_hash)) AS content_hash, u.etag, u.last_modified, u.retry_count, u.last_error,
       datetime(u.discovered_at / 1000, 'unixepoch') AS discovered_at,
       datetime(u.discovered_at / 1000, 'unixepoch') AS created_at,
       datetime(u.updated_at / 1000, 'unixepoch') AS updated_at
FROM urls u JOIN hosts h USING (host_id) LEFT JOIN leases q ON q.host_id = u.host_id AND q.url_id = u.url_id;

CREATE VIEW host_state AS
SELECT h.host_key AS host, datetime(nullif(h.last_start_at, 0) / 1000, 'unixepoch') AS last_fetch_at,
       h.delay_ms AS min_delay_ms, h.in_flight, h.max_in_flight, h.errors,
       datetime(nullif(h.blocked_until, 0) / 1000, 'unixepoch') AS blocked_until, h.block_reason,
       r.body AS robots_txt, datetime(r.fetched_at / 1000, 'unixepoch') AS robots_fetched_at,
       24 AS robots_ttl_hours
FROM hosts h LEFT JOIN robots r USING (host_id);

CREATE VIEW feed_state AS
SELECT feed_id, source_id, kind, url AS feed_url, datetime(last_polled_at / 1000, 'unixepoch') AS last_polled_at,
       etag AS last_etag, last_modified, item_count AS last_item_count, consecutive_errors, last_error,
       error_class AS last_error_type, datetime(next_poll_at / 1000, 'unixepoch') AS next_poll_at
FROM feeds;

CREATE VIEW all_counts AS SELECT source_id, origin, status, n FROM counts;
CREATE VIEW host_count AS SELECT count(*) AS n FROM hosts;
