-- Purpose: read and write single jobs: their row in body, in one of live, history and dead, in letter and ready.
-- Parameters: columns in the order of the lists in the code that loads this file.
-- Index: body_id, the primary keys. Locks: the write lock; none for the reader.

-- name: insert_body
INSERT INTO body {insert_body}

-- name: update_body
UPDATE body SET {assign_body} WHERE seq = ?1

-- name: update_metadata
UPDATE body SET metadata = ?2 WHERE seq = ?1

-- name: delete_body
DELETE FROM body WHERE seq = ?1

-- name: insert_live
INSERT INTO live (seq, state, because, run_at, sort_key, strand, expires_at, queue)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

-- name: update_live
UPDATE live SET {assign_live} WHERE seq = ?1

-- name: delete_live
DELETE FROM live WHERE seq = ?1

-- name: delete_all_live
DELETE FROM live WHERE seq IN (SELECT value FROM json_each(?1))

-- name: live_by_id
SELECT {live_job}
FROM body JOIN live USING (seq) WHERE body.id = ?1

-- name: any_by_id
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE body.id = ?1

-- name: insert_history
INSERT INTO history {insert_history}

-- name: update_history
UPDATE history SET {assign_status} WHERE seq = ?1

-- name: delete_history
DELETE FROM history WHERE seq = ?1

-- name: insert_dead
INSERT INTO dead {insert_dead}

-- name: update_dead
UPDATE dead SET {assign_status} WHERE seq = ?1

-- name: delete_dead
DELETE FROM dead WHERE seq = ?1

-- name: insert_letter
INSERT INTO letter {insert_letter}

-- name: delete_letter
DELETE FROM letter WHERE seq = ?1

-- name: insert_ready
INSERT INTO ready VALUES (?1, ?2, ?3, ?4)

-- name: delete_ready
DELETE FROM ready WHERE strand = ?1 AND sort_key = ?2 AND id = ?3
