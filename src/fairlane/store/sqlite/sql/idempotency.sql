-- Purpose: find, take and release idempotency keys and dedup keys.
-- Parameters: the columns of the key, then those of its job.
-- Index: the primary keys of idempotency and dedup. Locks: the write lock.

-- name: same_key
SELECT id, fingerprint, state, settled_at FROM idempotency WHERE tenant = ?1 AND key = ?2

-- name: same_dedup
SELECT id FROM dedup WHERE tenant = ?1 AND task = ?2 AND key = ?3

-- name: insert_key
INSERT INTO idempotency (tenant, key, id, fingerprint) VALUES (?1, ?2, ?3, ?4)

-- name: delete_key
DELETE FROM idempotency WHERE tenant = ?1 AND key = ?2

-- name: insert_dedup
INSERT INTO dedup (tenant, task, key, id) VALUES (?1, ?2, ?3, ?4)

-- name: end_key
UPDATE idempotency SET state = ?1, settled_at = ?2 WHERE tenant = ?3 AND key = ?4 AND id = ?5

-- name: delete_dedup
DELETE FROM dedup WHERE tenant = ?1 AND task = ?2 AND key = ?3 AND id = ?4
