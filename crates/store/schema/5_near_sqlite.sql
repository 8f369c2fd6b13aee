-- Near-duplicates, on SQLite.

-- The first of the near-duplicates of a document (host_id and url_id); NULL: this
-- one is the first, or has no near-duplicates.
ALTER TABLE documents ADD COLUMN cluster BLOB;
-- cluster: the near-duplicates of a document
CREATE INDEX documents_cluster ON documents (cluster, host_id, url_id) WHERE cluster IS NOT NULL;

-- Separate from the documents: a look-up reads a dozen of them, and no bodies.
CREATE TABLE sketches (
    host_id INTEGER NOT NULL,
    url_id  BLOB NOT NULL,
    sketch  BLOB NOT NULL,
    PRIMARY KEY (host_id, url_id)
) WITHOUT ROWID;

-- The keys under which a document is indexed: a few dozen rows per key at most.
CREATE TABLE sketch_keys (
    sketch_key INTEGER NOT NULL,
    host_id    INTEGER NOT NULL,
    url_id     BLOB NOT NULL,
    PRIMARY KEY (sketch_key, host_id, url_id)
) WITHOUT ROWID;
