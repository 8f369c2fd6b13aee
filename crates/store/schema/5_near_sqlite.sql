-- Near-duplicates, on SQLite.

-- The first of the documents that tell the same story (host_id and url_id);
-- NULL: this one is the first, or tells a story of its own.
ALTER TABLE documents ADD COLUMN cluster BLOB;
-- cluster: the others that tell it
CREATE INDEX documents_cluster ON documents (cluster, host_id, url_id) WHERE cluster IS NOT NULL;

-- Apart from the documents: a look-up reads a dozen of them, and no bodies.
CREATE TABLE sketches (
    host_id INTEGER NOT NULL,
    url_id  BLOB NOT NULL,
    sketch  BLOB NOT NULL,
    PRIMARY KEY (host_id, url_id)
) WITHOUT ROWID;

-- Under which keys a document is found: a few dozen rows for a key at most.
CREATE TABLE sketch_keys (
    sketch_key INTEGER NOT NULL,
    host_id    INTEGER NOT NULL,
    url_id     BLOB NOT NULL,
    PRIMARY KEY (sketch_key, host_id, url_id)
) WITHOUT ROWID;
