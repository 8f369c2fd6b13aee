-- State shared by the pollers, on both engines.

-- Demand of a feed on the request budget, times 10^9 (see docs/POLLING.md).
ALTER TABLE feeds ADD COLUMN demand_nano BIGINT NOT NULL DEFAULT 0;

-- Values that all machines share: the number of polls, the price of one.
CREATE TABLE marks (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    n     BIGINT NOT NULL,
    at    BIGINT NOT NULL
);

-- Titles seen within a week, by which items of aggregators are deduplicated.
CREATE TABLE seen_titles (
    source_id  BIGINT NOT NULL,
    title_hash BYTEA NOT NULL,             -- of the week and the title
    seen_at    BIGINT NOT NULL,
    PRIMARY KEY (source_id, title_hash)
);
