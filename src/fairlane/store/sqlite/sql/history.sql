-- Purpose: keep removed jobs in batches until they are archived (S105), and take jobs back (S116).
-- Parameters: see each statement. Index: the primary keys, archive_job_tenant, body_id. Locks: the write lock for writes.

-- name: open_batch
SELECT number FROM archive_batch WHERE closed_at IS NULL

-- name: begin_batch
INSERT INTO archive_batch (closed_at) VALUES (NULL) RETURNING number

-- name: insert_job
-- A job that came back and is removed again may be in it already.
INSERT INTO archive_job (batch, id, tenant, record) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (batch, id) DO UPDATE SET record = excluded.record

-- name: oldest_batch
SELECT number, closed_at FROM archive_batch ORDER BY number LIMIT 1

-- name: close_batch
UPDATE archive_batch SET closed_at = ?2 WHERE number = ?1

-- name: page
-- ?1 the batch, ?2 the job to go on after, ?3 how many.
SELECT id, record FROM archive_job WHERE batch = ?1 AND id > ?2 ORDER BY id LIMIT ?3

-- name: remove_batch
DELETE FROM archive_batch WHERE number = ?1 AND closed_at IS NOT NULL RETURNING 1

-- name: remove_jobs
DELETE FROM archive_job WHERE batch = ?1

-- name: waiting
SELECT count(*) FROM archive_job WHERE ?1 IS NULL OR tenant = ?1

-- name: forget
DELETE FROM archive_job WHERE tenant = ?1

-- name: is_known
SELECT 1 FROM body WHERE id = ?1
