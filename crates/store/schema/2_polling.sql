-- What the pollers share, on both engines.

-- How much a feed asks of the request budget, times 10^9 (see docs/POLLING.md).
ALTER TABLE feeds ADD COLUMN demand_nano BIGINT NOT NULL DEFAULT 0;

-- Small facts that all machines agree on: the number of polls, the price of one.
CREATE TABLE marks (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    n     BIGINT NOT NULL,
    at    BIGINT NOT NULL
);

-- Stories of aggregators are told apart by title within a week: what was seen.
CREATE TABLE seen_titles (
    source_id  BIGINT NOT NULL,
    title_hash BYTEA NOT NULL,             -- of the week and the title
    seen_at    BIGINT NOT NULL,
    PRIMARY KEY (source_id, title_hash)
);
