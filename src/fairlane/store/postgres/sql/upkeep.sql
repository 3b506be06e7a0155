-- Upkeep: what is old, what a tenant has, and the books. Index: history_settled, dead_settled, history_id, dead_id,
-- job_tenant, history_tenant, dead_tenant, idempotency_settled, turn_name, job_running, job_gate.

-- name: now
SELECT {s}.now_or($1)

-- name: make_days
SELECT {s}.make_days($1)

-- name: days
-- Days by age, with their size on disk; one that somebody drops meanwhile is seen and has none.
SELECT day::oid AS day, since, until, coalesce(pg_table_size(day), 0) AS bytes FROM {s}.days() ORDER BY since

-- name: clear_day
SELECT {s}.clear_day($1::oid::regclass)

-- name: drop_day
SELECT {s}.drop_day($1::oid::regclass)

-- name: one_pruner
SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))

-- name: over
-- $1 now, $2 tenant or null, $3 how many, $4 to $6 times to keep by state, $7 of results, $8 and $9 times by queue and by
-- tenant as JSON, $10 the instant of the shortest of all: nothing settled since is looked at; $11 large days, which go as
-- a whole: of these only what a tenant's or queue's own time ends. Only rows that are over count towards the limit.
SELECT home, id, settled_at, is_over FROM (
  SELECT ended.*,
         CASE WHEN ($9::jsonb ? tenant) OR ($8::jsonb ? queue)
              THEN settled_at <= $1::bigint - coalesce(($9::jsonb ->> tenant)::bigint, ($8::jsonb ->> queue)::bigint)
              ELSE day <> ALL ($11::oid[])
               AND settled_at <= $1 - CASE state WHEN {succeeded} THEN $4::bigint WHEN {cancelled} THEN $5::bigint ELSE $6::bigint END
         END AS is_over
  FROM (SELECT 'history' AS home, tableoid AS day, id, tenant, queue, state, settled_at, length(result) > 0 AS has_result
        FROM {s}.history WHERE settled_at <= $10::bigint AND ($2::text IS NULL OR tenant = $2)
        UNION ALL
        SELECT 'dead', tableoid, id, tenant, queue, state, settled_at, false
        FROM {s}.dead WHERE settled_at <= $10::bigint AND ($2::text IS NULL OR tenant = $2)) ended) judged
WHERE is_over OR (has_result AND settled_at <= $1 - $7::bigint)
ORDER BY settled_at, id LIMIT $3

-- name: history_out
WITH gone AS (
  DELETE FROM {s}.history USING unnest($1::uuid[], $2::bigint[]) AS over (id, settled_at)
  WHERE history.id = over.id AND history.settled_at = over.settled_at
  RETURNING history.tenant, history.queue, history.state)
INSERT INTO {s}.tally_delta (tenant, queue, state, jobs)
SELECT tenant, queue, state, -count(*) FROM gone GROUP BY tenant, queue, state

-- name: dead_out
WITH gone AS (
  DELETE FROM {s}.dead USING unnest($1::uuid[]) AS over (id) WHERE dead.id = over.id
  RETURNING dead.tenant, dead.queue, dead.state)
INSERT INTO {s}.tally_delta (tenant, queue, state, jobs)
SELECT tenant, queue, state, -count(*) FROM gone GROUP BY tenant, queue, state

-- name: results_out
UPDATE {s}.history SET result = '' FROM unnest($1::uuid[], $2::bigint[]) AS over (id, settled_at)
WHERE history.id = over.id AND history.settled_at = over.settled_at

-- name: keys_out
-- $1 settled at or before, $2 tenant or null, $3 how many.
DELETE FROM {s}.idempotency WHERE (tenant, key) IN (
  SELECT tenant, key FROM {s}.idempotency kept
  WHERE settled_at <= $1 AND ($2::text IS NULL OR tenant = $2)
    AND NOT EXISTS (SELECT 1 FROM {s}.job WHERE job.id = kept.id)
    AND NOT EXISTS (SELECT 1 FROM {s}.history WHERE history.id = kept.id)
    AND NOT EXISTS (SELECT 1 FROM {s}.dead WHERE dead.id = kept.id)
  LIMIT $3)
RETURNING 1

-- name: roll_tally
SELECT {s}.roll_tally($1)

-- name: marks_out
-- $1 now. Changes of policies that every queue has heeded, an hour ago at least (a queue may just be coming into being),
-- or that are a day old and followed by another of the same subject.
DELETE FROM {s}.mark
WHERE (at < $1 - 3600000000
       AND id < (SELECT min(coalesce(m.mark, 0)) FROM {s}.queue q LEFT JOIN {s}.marked m ON m.queue = q.name))
   OR (at < $1 - 86400000000 AND EXISTS (
         SELECT 1 FROM {s}.mark newer WHERE newer.kind = mark.kind AND newer.name = mark.name AND newer.id > mark.id))

-- name: running_of
SELECT id FROM {s}.job WHERE tenant = $1 AND state = {running}

-- name: contents_of
-- A tenant's jobs after $2, $3, oldest enqueue first, $4 of them, but for running ones: those that hold nothing any more
-- are read too, so that the pass is bounded. An erased payload is empty; a stored one never is. Rows are compared with
-- their tenant, as only its index can answer that.
SELECT id, enqueued_at, queue, state, is_left FROM (
  (SELECT id, enqueued_at, queue, state, true AS is_left FROM {s}.job
   WHERE (tenant, enqueued_at, id) > ($1, $2::bigint, $3::uuid) AND tenant <= $1 AND worker IS NULL
   ORDER BY tenant, enqueued_at, id LIMIT $4)
  UNION ALL
  (SELECT id, enqueued_at, queue, state, length(payload) > 0 OR tags IS NOT NULL OR created_by IS NOT NULL
            OR idempotency_key IS NOT NULL OR correlation_id IS NOT NULL OR dedup_key IS NOT NULL FROM {s}.history
   WHERE (tenant, enqueued_at, id) > ($1, $2::bigint, $3::uuid) AND tenant <= $1
   ORDER BY tenant, enqueued_at, id LIMIT $4)
  UNION ALL
  (SELECT id, enqueued_at, queue, state, length(payload) > 0 OR tags IS NOT NULL OR created_by IS NOT NULL
            OR idempotency_key IS NOT NULL OR correlation_id IS NOT NULL OR dedup_key IS NOT NULL FROM {s}.dead
   WHERE (tenant, enqueued_at, id) > ($1, $2::bigint, $3::uuid) AND tenant <= $1
   ORDER BY tenant, enqueued_at, id LIMIT $4)) mine
ORDER BY enqueued_at, id LIMIT $4

-- name: finished
SELECT {finished} FROM {s}.history WHERE id = ANY ($1::uuid[])
UNION ALL SELECT {finished} FROM {s}.dead WHERE id = ANY ($1::uuid[])

-- name: erase_history
UPDATE {s}.history SET payload = '', checksum = 0, metadata = '{}', tags = NULL, created_by = NULL, idempotency_key = NULL,
  correlation_id = NULL, dedup_key = NULL, because = empty.because,
  result = CASE WHEN result IS NULL THEN NULL ELSE ''::bytea END,
  attempts = CASE WHEN empty.attempts IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements_text(empty.attempts)) END
FROM jsonb_to_recordset($1::jsonb) AS empty (id uuid, settled_at bigint, because text, attempts jsonb)
WHERE history.id = empty.id AND history.settled_at = empty.settled_at

-- name: erase_dead
UPDATE {s}.dead SET payload = '', checksum = 0, metadata = '{}', tags = NULL, created_by = NULL, idempotency_key = NULL,
  correlation_id = NULL, dedup_key = NULL, because = empty.because,
  result = CASE WHEN result IS NULL THEN NULL ELSE ''::bytea END,
  attempts = CASE WHEN empty.attempts IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements_text(empty.attempts)) END
FROM jsonb_to_recordset($1::jsonb) AS empty (id uuid, settled_at bigint, because text, attempts jsonb)
WHERE dead.id = empty.id AND dead.settled_at = empty.settled_at

-- name: keys_of
DELETE FROM {s}.idempotency WHERE tenant = $1
  AND NOT EXISTS (SELECT 1 FROM {s}.job WHERE job.id = idempotency.id)

-- name: books_edge
-- Tenants with nothing left are remembered for their clocks, and have no book.
SELECT queue, tenant FROM {s}.turn
WHERE delayed + ready <> 0 AND ($1::text IS NULL OR tenant = $1) AND (queue, tenant) > ($2::text, $3::text)
ORDER BY queue, tenant LIMIT 1 OFFSET $4

-- name: books
SELECT queue, tenant, sum(waiting)::bigint, sum(running)::bigint FROM (
  SELECT queue, tenant, delayed + ready AS waiting, 0 AS running FROM {s}.turn
  WHERE ($1::text IS NULL OR tenant = $1) AND (queue, tenant) > ($2::text, $3::text)
    AND ($5::text IS NULL OR (queue, tenant) <= ($5::text, $6::text))
  UNION ALL
  SELECT queue, tenant, delayed + ready, 0 FROM {s}.delta
  WHERE ($1::text IS NULL OR tenant = $1) AND (queue, tenant) > ($2::text, $3::text)
    AND ($5::text IS NULL OR (queue, tenant) <= ($5::text, $6::text))
  UNION ALL
  SELECT queue, tenant, 0, 1 FROM {s}.job
  WHERE state = {running} AND ($1::text IS NULL OR tenant = $1) AND (queue, tenant) > ($2::text, $3::text)
    AND ($5::text IS NULL OR (queue, tenant) <= ($5::text, $6::text))) books
GROUP BY queue, tenant HAVING sum(waiting) <> 0 OR sum(running) <> 0
ORDER BY queue, tenant LIMIT $4 + 1

-- name: homes
SELECT 'hot', count(*) FROM {s}.job WHERE $1::text IS NULL OR tenant = $1
UNION ALL SELECT 'history', count(*) FROM {s}.history WHERE $1::text IS NULL OR tenant = $1
UNION ALL SELECT 'dead', count(*) FROM {s}.dead WHERE $1::text IS NULL OR tenant = $1

-- name: gates
SELECT gate, count(*) FROM {s}.job WHERE gate IS NOT NULL GROUP BY gate ORDER BY gate

-- name: keys
SELECT (SELECT count(*) FROM {s}.idempotency WHERE $1::text IS NULL OR tenant = $1),
       (SELECT count(*) FROM {s}.dedup WHERE $1::text IS NULL OR tenant = $1)

-- name: purpose
SELECT value FROM {s}.meta WHERE name = 'purpose'

-- name: keep_out
-- Nobody can bring in a job from here on, and who was about to has ended. It excludes itself, too.
LOCK TABLE {s}.job IN SHARE ROW EXCLUSIVE MODE

-- name: has_jobs
SELECT EXISTS (SELECT 1 FROM {s}.job) OR EXISTS (SELECT 1 FROM {s}.history) OR EXISTS (SELECT 1 FROM {s}.dead)

-- name: purpose_set
INSERT INTO {s}.meta (name, value) VALUES ('purpose', $1) ON CONFLICT (name) DO NOTHING
