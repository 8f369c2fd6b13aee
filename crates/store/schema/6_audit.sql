-- Who may come in until when, and what those who came in have changed.

ALTER TABLE tokens ADD COLUMN expires_at BIGINT;   -- NULL: until it is revoked

CREATE TABLE audit (
    audit_id   BIGINT PRIMARY KEY,
    at         BIGINT NOT NULL,
    who        TEXT NOT NULL,              -- name of the token
    role       TEXT NOT NULL,
    action     TEXT NOT NULL,              -- in words
    method     TEXT NOT NULL,
    path       TEXT NOT NULL,
    status     INTEGER NOT NULL,           -- as it was answered; from 400 on refused or failed
    request_id TEXT NOT NULL
);
