-- Tables off the hot path, the same text on SQLite and PostgreSQL. Times are
-- milliseconds since 1970; JSON is text; ids are created by the program.

CREATE TABLE aliases (
    host_id        BIGINT NOT NULL,
    url_id         BYTEA NOT NULL,
    target_host_id BIGINT NOT NULL,
    target_url_id  BYTEA NOT NULL,
    kind           TEXT NOT NULL,          -- redirect, canonical
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (host_id, url_id)
);

CREATE TABLE robots (
    host_id    BIGINT PRIMARY KEY,
    status     INTEGER NOT NULL,           -- HTTP status; 0 when there was no response
    body       TEXT NOT NULL,
    fetched_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE TABLE sources (
    source_id  BIGINT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    url        TEXT NOT NULL,
    kind       TEXT NOT NULL,
    priority   INTEGER NOT NULL,
    enabled    INTEGER NOT NULL,
    reason     TEXT,                       -- why it is disabled
    config     TEXT NOT NULL,              -- all other settings, as JSON
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Starter sources that were added once are never added again.
CREATE TABLE seeds (
    url       TEXT PRIMARY KEY,
    seeded_at BIGINT NOT NULL
);

CREATE TABLE feeds (
    feed_id            BIGINT PRIMARY KEY,
    source_id          BIGINT NOT NULL,
    kind               TEXT NOT NULL,      -- feed, sitemap
    url                TEXT NOT NULL,
    etag               TEXT,
    last_modified      TEXT,
    body_hash          TEXT,
    items_checksum     TEXT,
    item_count         INTEGER NOT NULL,
    last_polled_at     BIGINT,
    last_new_at        BIGINT,
    next_poll_at       BIGINT NOT NULL,
    lease_until        BIGINT NOT NULL,
    attempt            INTEGER NOT NULL,   -- fences pollers as the queue fences workers
    consecutive_errors INTEGER NOT NULL,
    error_class        TEXT,
    last_error         TEXT,
    paused_reason      TEXT,
    policy             TEXT NOT NULL,      -- the polling model, as JSON
    UNIQUE (source_id, kind, url)
);
-- claim_feeds: the due ones first
CREATE INDEX feeds_due ON feeds (next_poll_at);

CREATE TABLE feed_fetch_log (
    feed_id       BIGINT NOT NULL,
    started_at    BIGINT NOT NULL,
    elapsed_ms    BIGINT NOT NULL,
    outcome       TEXT NOT NULL,           -- ok, not_modified, redundant, failed
    items_seen    INTEGER NOT NULL,
    items_new     INTEGER NOT NULL,
    error_class   TEXT,
    error_message TEXT,
    bytes         BIGINT NOT NULL,
    PRIMARY KEY (feed_id, started_at)
);

CREATE TABLE documents (
    host_id      BIGINT NOT NULL,
    url_id       BYTEA NOT NULL,
    key_tail     BYTEA NOT NULL,           -- url_id and key_tail together are the url key
    revision     INTEGER NOT NULL,
    source_id    BIGINT NOT NULL,
    title        TEXT NOT NULL,
    content_hash BYTEA,
    duplicate_of BYTEA,                    -- url key of the earliest document with this hash
    fetched_at   BIGINT NOT NULL,
    body         TEXT NOT NULL,            -- the whole document, as JSON
    PRIMARY KEY (host_id, url_id)
);
-- content dedup: has this text been seen under another address?
CREATE INDEX documents_content ON documents (content_hash, fetched_at) WHERE content_hash IS NOT NULL;

CREATE TABLE sinks (
    name       TEXT PRIMARY KEY,
    enabled    INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,           -- whether it wants duplicate documents
    created_at BIGINT NOT NULL
);

-- The outbox: one row for each document that a sink does not have yet.
CREATE TABLE deliveries (
    sink            TEXT NOT NULL,
    host_id         BIGINT NOT NULL,
    url_id          BYTEA NOT NULL,
    revision        INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    last_error      TEXT,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (sink, host_id, url_id)
);
-- claim_deliveries: the due ones of one sink
CREATE INDEX deliveries_due ON deliveries (sink, next_attempt_at);

CREATE TABLE dead_letters (
    sink     TEXT NOT NULL,
    host_id  BIGINT NOT NULL,
    url_id   BYTEA NOT NULL,
    revision INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    died_at  BIGINT NOT NULL,
    PRIMARY KEY (sink, host_id, url_id)
);

CREATE TABLE tasks (
    task_id     BIGINT PRIMARY KEY,
    kind        TEXT NOT NULL,
    subject     TEXT NOT NULL,             -- what it is about, for example source:17
    status      TEXT NOT NULL,             -- running, done, failed
    detail      TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    finished_at BIGINT
);
-- start_task: when did this last run?
CREATE INDEX tasks_subject ON tasks (kind, subject, created_at);

CREATE TABLE runs (
    run_id      BIGINT PRIMARY KEY,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT,
    metrics     TEXT NOT NULL
);

CREATE TABLE tokens (
    token_id     BIGINT PRIMARY KEY,
    name         TEXT NOT NULL,
    role         TEXT NOT NULL,
    token_hash   BYTEA NOT NULL UNIQUE,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at   BIGINT
);

CREATE TABLE idempotency (
    idempotency_key TEXT PRIMARY KEY,
    body_hash       BYTEA NOT NULL,
    result          TEXT,                  -- NULL while the first request is in flight
    created_at      BIGINT NOT NULL
);
