-- Purpose: who may sign in, and who has (S79), and how often somebody has tried to (S81).

-- A record, by its kind and key. It is encoded, and holds hashes of passwords and secrets only.
CREATE TABLE access (
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at    INTEGER,
  expires_at INTEGER,
  record     BLOB NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX access_expires ON access (expires_at) WHERE expires_at IS NOT NULL;

-- How many attempts there were under a label, until the count begins anew.
CREATE TABLE sign_in_attempt (
  label TEXT PRIMARY KEY,
  count INTEGER NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
