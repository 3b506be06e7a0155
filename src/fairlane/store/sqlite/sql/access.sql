-- Purpose: users, tokens, sessions and sign-in links, and attempts to sign in (S79-S81).
-- Parameters: the columns of the row; "now" last. Index: the primary keys, access_expires. Locks: the write lock for writes.

-- name: read
SELECT record, revision, created_at, seen_at, expires_at FROM access WHERE kind = ?1 AND name = ?2

-- name: page
SELECT record, revision, created_at, seen_at, expires_at FROM access
WHERE kind = ?1 AND name > ?2 AND (expires_at IS NULL OR expires_at > ?4) ORDER BY name LIMIT ?3

-- name: write
INSERT INTO access (kind, name, record, revision, created_at, seen_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (kind, name) DO UPDATE SET
  record = excluded.record, revision = excluded.revision, created_at = excluded.created_at,
  seen_at = excluded.seen_at, expires_at = excluded.expires_at

-- name: remove
DELETE FROM access WHERE kind = ?1 AND name = ?2

-- name: seen
UPDATE access SET seen_at = ?3 WHERE kind = ?1 AND name = ?2

-- name: attempts
SELECT count, until FROM sign_in_attempt WHERE label = ?1

-- name: count
INSERT INTO sign_in_attempt (label, count, until) VALUES (?1, ?2, ?3)
ON CONFLICT (label) DO UPDATE SET count = excluded.count, until = excluded.until

-- name: forgive
UPDATE sign_in_attempt SET count = max(count - 1, 0) WHERE label = ?1

-- name: clean
DELETE FROM access WHERE expires_at <= ?1 RETURNING 1

-- name: clean_attempts
DELETE FROM sign_in_attempt WHERE until <= ?1
