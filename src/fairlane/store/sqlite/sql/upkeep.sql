-- Purpose: prune old jobs, forget a tenant, purge waiting jobs, count everything, dedicate the file.
-- Parameters: see each statement.
-- Index: history_settled, dead_settled, body_tenant, idempotency_settled, tenant_queue_tenant,
-- tenant_queue_name.
-- Locks: the write lock; none for the census.

-- name: finished
-- ?1 now, ?2 tenant or null, ?3 how many, ?4 to ?6 retention by state, ?7 of results, ?8 and ?9 retention by
-- queue and by tenant as JSON objects, ?10 now less the shortest retention: jobs settled later are not read.
-- Only jobs past their retention count towards the limit: jobs with a longer one may come before them.
SELECT {body}, {live}, {history}, {dead}
FROM (SELECT seq, state, settled_at, length(result) > 0 AS has_result FROM history
      WHERE settled_at <= ?10
      UNION ALL SELECT seq, state, settled_at, 0 FROM dead WHERE settled_at <= ?10) ended
JOIN body USING (seq)
LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE (?2 IS NULL OR body.tenant = ?2)
  AND (ended.settled_at <= ?1 - coalesce(
         (SELECT value FROM json_each(?9) WHERE key = body.tenant),
         (SELECT value FROM json_each(?8) WHERE key = body.queue),
         CASE ended.state WHEN {succeeded} THEN ?4 WHEN {cancelled} THEN ?5 ELSE ?6 END)
       OR (ended.has_result AND ended.settled_at <= ?1 - ?7))
ORDER BY ended.settled_at, body.id LIMIT ?3

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
-- many. A scrubbed body is empty; another one never is.
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE body.tenant = ?1 AND (body.enqueued_at, body.id) > (?2, ?3) AND (body.enqueued_at, body.id) <= (?4, ?5)
  AND live.state IS NOT {running}
  AND (live.seq IS NOT NULL OR length(body.payload) > 0 OR body.tags IS NOT NULL OR body.created_by IS NOT NULL
       OR body.idempotency_key IS NOT NULL OR body.correlation_id IS NOT NULL OR body.dedup_key IS NOT NULL)
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
