-- Stories of aggregators are told apart by title within a week: what was seen.
CREATE TABLE seen_titles (
    source_id  BIGINT NOT NULL,
    title_hash BYTEA NOT NULL,             -- of the week and the title
    seen_at    BIGINT NOT NULL,
    PRIMARY KEY (source_id, title_hash)
);
