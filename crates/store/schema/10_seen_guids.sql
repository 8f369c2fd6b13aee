-- Guids of items by source, and the URL that each was first listed with: the same
-- guid with another URL is the same item. On both engines.
CREATE TABLE seen_guids (
    source_id BIGINT NOT NULL,
    guid_hash BYTEA NOT NULL,
    host_id   BIGINT NOT NULL,
    url_id    BYTEA NOT NULL,
    seen_at   BIGINT NOT NULL,             -- when it was last listed, to the day
    PRIMARY KEY (source_id, guid_hash)
);
-- retention: the expired rows
CREATE INDEX seen_guids_age ON seen_guids (seen_at);
