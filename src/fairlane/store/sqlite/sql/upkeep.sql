-- Purpose: prune old jobs, forget a tenant, purge waiting jobs, count everything, dedicate the file.
-- Parameters: see each statement.
-- Index: history_settled, letter_settled, body_tenant, idempotency_settled, tenant_queue_tenant,
-- tenant_queue_name.
-- Locks: the write lock; none for the census.

-- name: newest_finished
-- The settlement of the last of the newest; ?1 how many are newer.
SELECT settled_at FROM history INDEXED BY history_settled ORDER BY settled_at DESC LIMIT 1 OFFSET ?1

-- name: oldest_finished
-- The settlements of the oldest from ?1 on; ?2 how many.
SELECT settled_at FROM history INDEXED BY history_settled WHERE settled_at >= ?1 ORDER BY settled_at LIMIT ?2

-- name: newest_dead
SELECT settled_at FROM letter INDEXED BY letter_settled ORDER BY settled_at DESC LIMIT 1 OFFSET ?1

-- name: history_over
-- Jobs and results of the history that are past their retention, oldest settlement first; only these count towards the limit.
-- Of what was settled from :first to :last; before :cut it is over by number. :tasks, :tenants and :queues are JSON objects,
-- looked into if :has_own.
SELECT {body}, {live}, {history}, {dead},
       iif(:has_own, coalesce((SELECT value FROM json_each(:tasks) WHERE key = body.task),
                              (SELECT value FROM json_each(:tenants) WHERE key = body.tenant),
                              (SELECT value FROM json_each(:queues) WHERE key = body.queue)), NULL) AS own
FROM history INDEXED BY history_settled CROSS JOIN body USING (seq)
LEFT JOIN live USING (seq) LEFT JOIN dead USING (seq)
WHERE history.settled_at BETWEEN :first AND :last AND (:tenant IS NULL OR body.tenant = :tenant)
  AND (history.settled_at + coalesce(own, iif(history.state = {succeeded}, :succeeded, :cancelled)) <= :now
       OR (own IS NULL AND history.settled_at < :cut)
       OR (length(history.result) > 0 AND history.settled_at <= :now - :results))
ORDER BY history.settled_at, body.id LIMIT :limit

-- name: letters_over
-- Dead letters that are past their retention, oldest death first, none of after :died_by; before :dead_cut by number. What
-- model.policy.retention says of dead letters is said again here: a letter that was decided may go earlier.
SELECT {body}, {live}, {history}, {dead},
       iif(:has_own, coalesce((SELECT value FROM json_each(:tasks) WHERE key = body.task),
                              (SELECT value FROM json_each(:tenants) WHERE key = body.tenant),
                              (SELECT value FROM json_each(:queues) WHERE key = body.queue)), NULL) AS own
FROM letter INDEXED BY letter_settled CROSS JOIN body USING (seq) CROSS JOIN dead USING (seq)
LEFT JOIN live USING (seq) LEFT JOIN history USING (seq)
WHERE letter.settled_at <= :died_by AND (:tenant IS NULL OR letter.tenant = :tenant)
  AND (coalesce(letter.settled_at + own,
                CASE WHEN decided_at IS NULL THEN letter.settled_at + :dead
                     ELSE iif(:is_from_review, decided_at, letter.settled_at) + :dead_reviewed END) <= :now
       OR (own IS NULL AND letter.settled_at < :dead_cut))
ORDER BY letter.settled_at, letter.id LIMIT :limit

-- name: delete_result
UPDATE history SET result = x'' WHERE seq = ?1

-- name: delete_old_keys
DELETE FROM idempotency
WHERE settled_at IS NOT NULL AND settled_at <= ?1 AND (?2 IS NULL OR tenant = ?2)
  AND NOT EXISTS (SELECT 1 FROM body WHERE body.id = idempotency.id)
RETURNING 1

-- name: running_of
SELECT {live_job}
FROM live JOIN body USING (seq) WHERE live.state = {running} AND body.tenant = ?1

-- name: running_count
SELECT coalesce(sum(running), 0) FROM tenant_queue WHERE tenant = ?1

-- name: edge_of_bodies
-- The last body that a pass may read, and the one after it. ?1 tenant, ?2 and ?3 where the pass begins, ?4
-- its length.
SELECT enqueued_at, id FROM body WHERE tenant = ?1 AND (enqueued_at, id) > (?2, ?3)
ORDER BY enqueued_at, id LIMIT 2 OFFSET ?4

-- name: contents_of
-- Jobs of a tenant (?1) that are not running and not yet scrubbed, after ?2, ?3 and up to ?4, ?5; ?6 how
-- many. A scrubbed body is empty; another one never is. A scrubbed letter has no notes, until somebody writes one.
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
LEFT JOIN letter USING (seq)
WHERE body.tenant = ?1 AND (body.enqueued_at, body.id) > (?2, ?3) AND (body.enqueued_at, body.id) <= (?4, ?5)
  AND live.state IS NOT {running}
  AND (live.seq IS NOT NULL OR length(body.payload) > 0 OR body.tags IS NOT NULL OR body.created_by IS NOT NULL
       OR body.idempotency_key IS NOT NULL OR body.correlation_id IS NOT NULL OR body.dedup_key IS NOT NULL
       OR letter.notes > 0)
ORDER BY body.enqueued_at, body.id LIMIT ?6

-- name: delete_keys_of
DELETE FROM idempotency WHERE tenant = ?1
  AND NOT EXISTS (SELECT 1 FROM body JOIN live USING (seq) WHERE body.id = idempotency.id)

-- name: edge_of_live
-- The last live job that a pass may read, and the one after it. ?1 where the pass begins, ?2 its length.
SELECT seq FROM live WHERE seq > ?1 ORDER BY seq LIMIT 2 OFFSET ?2

-- name: waiting
-- ?1 to ?3 tenant, queue and task or null, ?4 how many, after ?5 and up to ?6; null for no end.
SELECT {live_job}
FROM live CROSS JOIN body USING (seq)
WHERE live.seq > ?5 AND live.seq <= coalesce(?6, 9223372036854775807) AND live.state <> {running}
  AND (?1 IS NULL OR body.tenant = ?1) AND (?2 IS NULL OR body.queue = ?2) AND (?3 IS NULL OR body.task = ?3)
ORDER BY live.seq LIMIT ?4

-- name: homes
SELECT 'hot', count(*) FROM live JOIN body USING (seq) WHERE ?1 IS NULL OR tenant = ?1
UNION ALL SELECT 'history', count(*) FROM history JOIN body USING (seq) WHERE ?1 IS NULL OR tenant = ?1
UNION ALL SELECT 'dead', count(*) FROM dead JOIN body USING (seq) WHERE ?1 IS NULL OR tenant = ?1

-- name: books
SELECT queue, tenant, delayed + ready, running FROM tenant_queue
WHERE delayed + ready + running > 0 AND (?1 IS NULL OR tenant = ?1) AND (queue, tenant) > (?2, ?3)
ORDER BY queue, tenant LIMIT ?4

-- name: gates
SELECT name, used FROM gate WHERE used > 0 ORDER BY name

-- name: key_count
SELECT count(*) FROM idempotency WHERE ?1 IS NULL OR tenant = ?1

-- name: dedup_count
SELECT count(*) FROM dedup WHERE ?1 IS NULL OR tenant = ?1

-- name: purpose
SELECT value FROM meta WHERE name = 'purpose'

-- name: insert_purpose
INSERT INTO meta (name, value) VALUES ('purpose', ?1)

-- name: has_jobs
SELECT 1 FROM body LIMIT 1

-- name: unfinished_of
-- The unfinished jobs of a tenant (?1) in a queue (?2), ?3 at most: what places and counters are derived from.
SELECT live.seq, live.state, live.sort_key, live.strand, body.id, body.task
FROM body INDEXED BY body_tenant CROSS JOIN live USING (seq)
WHERE body.tenant = ?1 AND body.queue = ?2 LIMIT ?3

-- name: strands_of
SELECT {strand} FROM strand WHERE tenant_queue = ?1

-- name: places_of
-- The places in line of a tenant queue (?1).
SELECT ready.strand, ready.sort_key, ready.id FROM ready JOIN strand USING (strand) WHERE strand.tenant_queue = ?1

-- name: delete_places_of
DELETE FROM ready WHERE strand IN (SELECT strand FROM strand WHERE tenant_queue = ?1)

-- name: move_to_strand
UPDATE live SET strand = ?2 WHERE seq = ?1
