-- Near-duplicates, on PostgreSQL.

-- The first of the documents that tell the same story (host_id and url_id);
-- NULL: this one is the first, or tells a story of its own.
ALTER TABLE documents ADD COLUMN cluster BYTEA;
-- cluster: the others that tell it
CREATE INDEX documents_cluster ON documents (cluster, host_id, url_id) WHERE cluster IS NOT NULL;

-- Apart from the documents: a look-up reads a dozen of them, and no bodies.
CREATE TABLE sketches (
    host_id BIGINT NOT NULL,
    url_id  BYTEA NOT NULL,
    sketch  BYTEA NOT NULL,
    PRIMARY KEY (host_id, url_id)
);

-- Under which keys a document is found: a few dozen rows for a key at most.
CREATE TABLE sketch_keys (
    sketch_key BIGINT NOT NULL,
    host_id    BIGINT NOT NULL,
    url_id     BYTEA NOT NULL,
    PRIMARY KEY (sketch_key, host_id, url_id)
);
