-- Jobs in their homes: a body that is written once, and one row in `live`, `history` or `dead`.
-- Index: body_id, the primary keys. Locks: the writer's.

-- name: body_in
INSERT INTO body VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                         ?21, ?22)

-- name: body_set
UPDATE body SET payload = ?1, checksum = ?2, version = ?3, priority = ?4, enqueued_at = ?5, expires_at = ?6,
  idempotency_key = ?7, dedup_key = ?8, dedup_until = ?9, correlation_id = ?10, parent_id = ?11,
  max_attempts = ?12, timeout = ?13, at_most_once = ?14, tags = ?15, metadata = ?16, created_by = ?17
WHERE seq = ?18

-- name: body_out
DELETE FROM body WHERE seq = ?1

-- name: live_new
INSERT INTO live (seq, state, because, run_at, sort_key, attempt, failures, crashes, crashes_alone, snoozes, is_suspect,
                  fence, is_cancel_asked, strand, expires_at, queue)
VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, 0, 0, 0, 0, 0, 0, ?6, ?7, ?8)

-- name: live_set
UPDATE live SET state = ?1, because = ?2, run_at = ?3, sort_key = ?4, attempt = ?5, failures = ?6, crashes = ?7,
  crashes_alone = ?8, snoozes = ?9, is_suspect = ?10, fence = ?11, settled_at = ?12, result = ?13, attempts = ?14,
  worker = ?15, started_at = ?16, lease_until = ?17, is_cancel_asked = ?18, progress = ?19, expires_at = ?20,
  gate = ?21, is_alone = ?22, charged = ?23
WHERE seq = ?24

-- name: live_out
DELETE FROM live WHERE seq = ?1

-- name: live_all_out
DELETE FROM live WHERE seq IN (SELECT value FROM json_each(?1))

-- name: live_by_id
SELECT {body}, {live}, live.strand, live.expires_at, live.gate, live.is_alone, live.charged
FROM body JOIN live USING (seq) WHERE body.id = ?1

-- name: any_by_id
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE body.id = ?1

-- name: history_in
INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)

-- name: history_set
UPDATE history SET state = ?1, because = ?2, run_at = ?3, sort_key = ?4, attempt = ?5, failures = ?6, crashes = ?7,
  crashes_alone = ?8, snoozes = ?9, is_suspect = ?10, fence = ?11, settled_at = ?12, result = ?13, attempts = ?14
WHERE seq = ?15

-- name: history_out
DELETE FROM history WHERE seq = ?1

-- name: dead_in
INSERT INTO dead (seq, state, because, run_at, sort_key, attempt, failures, crashes, crashes_alone, snoozes,
                  is_suspect, fence, settled_at, result, attempts, id, error_class)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)

-- name: dead_set
UPDATE dead SET state = ?1, because = ?2, run_at = ?3, sort_key = ?4, attempt = ?5, failures = ?6, crashes = ?7,
  crashes_alone = ?8, snoozes = ?9, is_suspect = ?10, fence = ?11, settled_at = ?12, result = ?13, attempts = ?14
WHERE seq = ?15

-- name: dead_out
DELETE FROM dead WHERE seq = ?1

-- name: ready_in
INSERT INTO ready VALUES (?1, ?2, ?3, ?4)

-- name: ready_out
DELETE FROM ready WHERE strand = ?1 AND sort_key = ?2 AND id = ?3

-- name: key_ended
UPDATE idempotency SET state = ?1, settled_at = ?2 WHERE tenant = ?3 AND key = ?4 AND id = ?5

-- name: dedup_out
DELETE FROM dedup WHERE tenant = ?1 AND task = ?2 AND key = ?3 AND id = ?4
