-- Purpose: what all verbs share: numbers for bodies, and the counts of finished jobs.
-- Parameters: the columns of tally. Index: the primary keys. Locks: the write lock.

-- name: next_seq
SELECT coalesce(max(seq), 0) + 1 FROM body

-- name: tally
INSERT INTO tally (tenant, queue, state, jobs) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, queue, state) DO UPDATE SET jobs = jobs + excluded.jobs

-- name: take_write_lock
-- A write that changes nothing, for the application's own transaction. Reading first would fix a snapshot,
-- from which SQLite refuses later writes.
DELETE FROM meta WHERE 0
