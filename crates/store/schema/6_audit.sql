-- Expiry of tokens, and the audit log of changes made with them.

ALTER TABLE tokens ADD COLUMN expires_at BIGINT;   -- NULL: until it is revoked

CREATE TABLE audit (
    audit_id   BIGINT PRIMARY KEY,
    at         BIGINT NOT NULL,
    who        TEXT NOT NULL,              -- name of the token
    role       TEXT NOT NULL,
    action     TEXT NOT NULL,              -- summary of the route
    method     TEXT NOT NULL,
    path       TEXT NOT NULL,
    status     INTEGER NOT NULL,           -- of the response; from 400 on denied or failed
    request_id TEXT NOT NULL
);
