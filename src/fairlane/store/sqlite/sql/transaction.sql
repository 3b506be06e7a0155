-- Purpose: what all verbs share: numbers for bodies, the counts of finished jobs, entries for the journals.
-- Parameters: the columns of the table. Index: the primary keys. Locks: the write lock.

-- name: next_seq
SELECT coalesce(max(seq), 0) + 1 FROM body

-- name: tally
INSERT INTO tally (tenant, queue, state, jobs) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, queue, state) DO UPDATE SET jobs = jobs + excluded.jobs

-- name: append
INSERT INTO pending_entry (journal, at, kind, tenant, subject, count, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)

-- name: take_write_lock
-- A write that changes nothing, for the application's own transaction. Reading first would fix a snapshot,
-- from which SQLite refuses later writes.
DELETE FROM meta WHERE 0
