-- Purpose: questions to workers and their answers (S70).
-- Parameters: the columns of the row; "now" last. Index: the primary key, question_worker. Locks: the write lock for writes.

-- name: is_registered
SELECT 1 FROM worker WHERE id = ?1

-- name: is_asked
SELECT 1 FROM question WHERE id = ?1

-- name: ask
INSERT INTO question (id, worker, kind, asked_at, until) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: drop_oldest
DELETE FROM question WHERE id IN (
  SELECT id FROM question WHERE worker = ?1 ORDER BY asked_at DESC, id DESC LIMIT -1 OFFSET ?2)

-- name: unanswered
SELECT id, kind, asked_at FROM question WHERE worker = ?1 AND answered_at IS NULL AND until > ?2 ORDER BY asked_at, id

-- name: answer
UPDATE question SET answer = ?3, answered_at = ?4
WHERE id = ?1 AND worker = ?2 AND answered_at IS NULL AND until > ?4 RETURNING 1

-- name: read
SELECT asked_at, answered_at, answer FROM question WHERE id = ?1

-- name: clean
DELETE FROM question WHERE asked_at <= ?1 RETURNING 1
