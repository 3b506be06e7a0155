-- Purpose: number what was appended to the journals; read and trim the numbered entries (S60, S76).
-- Parameters: see each statement.
-- Placeholders: {index} the index that is walked, {walk} the condition that it answers, {order} ASC or DESC.
-- Index: the primary keys, pending_entry_journal, entry_tenant, entry_subject.
-- Locks: the write lock for writes; none for the reader (a snapshot).

-- name: end
SELECT revision, coalesce((SELECT min(number) FROM entry WHERE journal = ?1), 0), last, memory
FROM journal WHERE name = ?1

-- name: pending
-- ?1 the journal, ?2 tenant or null, ?3 how many.
SELECT place, at, kind, tenant, subject, count, body FROM pending_entry
WHERE journal = ?1 AND (?2 IS NULL OR tenant = ?2) ORDER BY place LIMIT ?3

-- name: count_pending
-- ?1 the journal, ?2 places as a JSON array.
SELECT count(*) FROM pending_entry WHERE journal = ?1 AND place IN (SELECT value FROM json_each(?2))

-- name: take
-- As above.
DELETE FROM pending_entry WHERE journal = ?1 AND place IN (SELECT value FROM json_each(?2))

-- name: insert
INSERT INTO entry (journal, number, at, kind, tenant, subject, count, body, seal)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)

-- name: write_end
UPDATE journal SET revision = revision + 1, last = ?2, memory = ?3 WHERE name = ?1

-- name: trim
-- ?1 the journal, ?2 the last number to delete, ?3 how many.
DELETE FROM entry WHERE journal = ?1 AND number IN (
  SELECT number FROM entry WHERE journal = ?1 AND number <= ?2 ORDER BY number LIMIT ?3)

-- name: edge
-- The last entry that a call may read, and the one after it.
SELECT number FROM entry {index} WHERE journal = :journal AND {walk} AND number >= :low AND number <= :high
ORDER BY number {order} LIMIT 2 OFFSET :limit

-- name: entries
SELECT number, at, kind, tenant, subject, count, body, seal FROM entry {index}
WHERE journal = :journal AND {walk} AND number >= :low AND number <= :high
  AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
  AND (:subject IS NULL OR subject = :subject)
  AND (:since IS NULL OR at >= :since) AND (:until IS NULL OR at < :until)
ORDER BY number {order} LIMIT :limit
