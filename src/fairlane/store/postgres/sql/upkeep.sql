-- Upkeep: retention, forgetting a tenant, counters. Index: history_settled, dead_settled, history_id, dead_id, job_tenant,
-- history_tenant, dead_tenant, idempotency_settled, tenant_queue_name, job_running, job_gate. Locks: `one_pruner` lets one
-- prune at a time; `lock_jobs` locks the table; see functions/upkeep/history_days.sql for the rest.

-- name: now
SELECT {schema}.now_or($1)

-- name: create_history_days
SELECT {schema}.create_history_days($1)

-- name: history_days
-- Days by age, with their size on disk; one that is dropped meanwhile has none.
SELECT day::oid AS day, since, until, coalesce(pg_table_size(day), 0) AS bytes FROM {schema}.history_days() ORDER BY since

-- name: empty_history_day
SELECT {schema}.empty_history_day($1::oid::regclass)

-- name: drop_history_day
SELECT {schema}.drop_history_day($1::oid::regclass)

-- name: one_pruner
SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))

-- name: states_between
-- What ended from $1 on and before $2, the bounds of a day: only its partition is read.
SELECT state, count(*) FROM {schema}.history WHERE settled_at >= $1 AND settled_at < $2 GROUP BY state

-- name: history_total
SELECT coalesce(sum(jobs), 0)::bigint FROM (
  SELECT jobs FROM {schema}.tally WHERE state IN ({succeeded}, {cancelled})
  UNION ALL SELECT jobs FROM {schema}.tally_delta WHERE state IN ({succeeded}, {cancelled})) counted

-- name: settled_after
-- How many jobs of the history ended after $1, counted up to $2.
SELECT count(*) FROM (SELECT 1 FROM {schema}.history WHERE settled_at > $1 LIMIT $2) newer

-- name: newest_finished
-- The settlement of the last of the newest, of those that ended after $1; $2 how many are newer.
SELECT settled_at FROM {schema}.history WHERE settled_at > $1 ORDER BY settled_at DESC LIMIT 1 OFFSET $2

-- name: newest_dead
SELECT settled_at FROM {schema}.dead ORDER BY settled_at DESC LIMIT 1 OFFSET $1

-- name: over
-- $1 now, $2 tenant or null, $3 how many, $4 to $6 retention by state, $7 of results, $8 to $10 retention by task, tenant and
-- queue as JSON; $11 and $12 first and last settlements of the spans that are read; $13 large days, which go as a whole: of
-- these only rows whose own retention is over; $14 the settlement before which history is over by number. $15 retention of
-- letters that were decided, counted from the decision if $16; $17 none that died since is read; $18 as $14, of letters. Only
-- rows past retention count towards the limit. As `Retention.is_over` says.
SELECT home, id, settled_at, decided_at, is_over FROM (
  SELECT owned.*,
         CASE WHEN own IS NOT NULL THEN settled_at <= $1::bigint - own
              WHEN settled_at < cut THEN true
              WHEN is_decided THEN CASE WHEN $16::boolean THEN decided_at ELSE settled_at END <= $1 - $15::bigint
              ELSE day <> ALL ($13::oid[])
               AND settled_at <= $1 - CASE state WHEN {succeeded} THEN $4::bigint WHEN {cancelled}
                 THEN $5::bigint ELSE $6::bigint END
         END AS is_over
  FROM (
    SELECT ended.*, coalesce(($8::jsonb ->> task)::bigint, ($9::jsonb ->> tenant)::bigint, ($10::jsonb ->> queue)::bigint) AS own
    FROM (SELECT 'history' AS home, h.tableoid AS day, id, tenant, queue, task, state, settled_at, NULL::bigint AS decided_at,
                 false AS is_decided, length(result) > 0 AS has_result, $14::bigint AS cut
          FROM unnest($11::bigint[], $12::bigint[]) AS span (first, last)
          JOIN {schema}.history h ON settled_at BETWEEN span.first AND span.last
          WHERE $2::text IS NULL OR tenant = $2
          UNION ALL
          SELECT 'dead', tableoid, id, tenant, queue, task, state, settled_at, decided_at,
                 review NOT IN ('pending', 'reprocessed') AND decided_at IS NOT NULL, false, $18::bigint
          FROM {schema}.dead WHERE settled_at <= $17::bigint AND ($2::text IS NULL OR tenant = $2)) ended) owned) judged
WHERE is_over OR (has_result AND settled_at <= $1 - $7::bigint)
ORDER BY settled_at, id LIMIT $3

-- name: take_history
-- As `delete_history`, for the archive: returns the jobs.
WITH gone AS (
  DELETE FROM {schema}.history USING unnest($1::uuid[], $2::bigint[]) AS over (id, settled_at)
  WHERE history.id = over.id AND history.settled_at = over.settled_at
  RETURNING history.*
), tally AS (
  INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs)
  SELECT tenant, queue, state, -count(*) FROM gone GROUP BY tenant, queue, state)
SELECT {record_of_finished} FROM gone

-- name: delete_history
-- Returns how many are gone by state.
WITH gone AS (
  DELETE FROM {schema}.history USING unnest($1::uuid[], $2::bigint[]) AS over (id, settled_at)
  WHERE history.id = over.id AND history.settled_at = over.settled_at
  RETURNING history.tenant, history.queue, history.state
), tally AS (
  INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs)
  SELECT tenant, queue, state, -count(*) FROM gone GROUP BY tenant, queue, state)
SELECT state, count(*) FROM gone GROUP BY state

-- name: delete_dead
-- Letters about which somebody has decided since are kept, and those that somebody has locked. Returns what is gone.
-- Locks: the rows, in the order of their ids, SKIP LOCKED.
WITH locked AS (
  SELECT dead.id FROM {schema}.dead JOIN unnest($1::uuid[], $2::bigint[]) AS over (id, decided_at) ON dead.id = over.id
  WHERE dead.decided_at IS NOT DISTINCT FROM over.decided_at ORDER BY dead.id FOR UPDATE OF dead SKIP LOCKED
), gone AS (
  DELETE FROM {schema}.dead USING locked WHERE dead.id = locked.id RETURNING dead.*
), tally AS (
  INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs)
  SELECT tenant, queue, state, -count(*) FROM gone GROUP BY tenant, queue, state)
SELECT {record_of_finished}, {letter} FROM gone

-- name: delete_results
UPDATE {schema}.history SET result = '' FROM unnest($1::uuid[], $2::bigint[]) AS over (id, settled_at)
WHERE history.id = over.id AND history.settled_at = over.settled_at

-- name: delete_keys
-- $1 settled at or before, $2 tenant or null, $3 how many.
DELETE FROM {schema}.idempotency WHERE (tenant, key) IN (
  SELECT tenant, key FROM {schema}.idempotency k
  WHERE settled_at <= $1 AND ($2::text IS NULL OR tenant = $2)
    AND NOT EXISTS (SELECT 1 FROM {schema}.job WHERE job.id = k.id)
    AND NOT EXISTS (SELECT 1 FROM {schema}.history WHERE history.id = k.id)
    AND NOT EXISTS (SELECT 1 FROM {schema}.dead WHERE dead.id = k.id)
  LIMIT $3)
RETURNING 1

-- name: sum_tally_deltas
SELECT {schema}.sum_tally_deltas($1)

-- name: delete_policy_changes
-- $1 now. Policy changes that every queue has applied, an hour old at least (a queue may just be created), or that are a day
-- old and followed by another of the same subject.
DELETE FROM {schema}.policy_change
WHERE (at < $1 - 3600000000
       AND id < (SELECT min(coalesce(m.change_id, 0))
         FROM {schema}.queue q LEFT JOIN {schema}.applied_policy_change m ON m.queue = q.name))
   OR (at < $1 - 86400000000 AND EXISTS (
         SELECT 1 FROM {schema}.policy_change newer WHERE newer.kind = policy_change.kind AND newer.name = policy_change.name
           AND newer.id > policy_change.id))

-- name: running_of
SELECT id FROM {schema}.job WHERE tenant = $1 AND state = {running}

-- name: contents_of
-- A tenant's jobs after $2, $3, oldest enqueue first, $4 of them, without running ones. Scrubbed jobs are read too, so that
-- the pass is bounded; a scrubbed payload is empty, a stored one never is. Compared with the tenant, because only its
-- indexes can answer that.
SELECT id, enqueued_at, queue, state, is_left FROM (
  (SELECT id, enqueued_at, queue, state, true AS is_left FROM {schema}.job
   WHERE (tenant, enqueued_at, id) > ($1, $2::bigint, $3::uuid) AND tenant <= $1 AND worker IS NULL
   ORDER BY tenant, enqueued_at, id LIMIT $4)
  UNION ALL
  (SELECT id, enqueued_at, queue, state, length(payload) > 0 OR tags IS NOT NULL OR created_by IS NOT NULL
            OR idempotency_key IS NOT NULL OR correlation_id IS NOT NULL OR dedup_key IS NOT NULL FROM {schema}.history
   WHERE (tenant, enqueued_at, id) > ($1, $2::bigint, $3::uuid) AND tenant <= $1
   ORDER BY tenant, enqueued_at, id LIMIT $4)
  UNION ALL
  (SELECT id, enqueued_at, queue, state, length(payload) > 0 OR tags IS NOT NULL OR created_by IS NOT NULL OR has_notes
            OR idempotency_key IS NOT NULL OR correlation_id IS NOT NULL OR dedup_key IS NOT NULL FROM {schema}.dead
   WHERE (tenant, enqueued_at, id) > ($1, $2::bigint, $3::uuid) AND tenant <= $1
   ORDER BY tenant, enqueued_at, id LIMIT $4)) mine
ORDER BY enqueued_at, id LIMIT $4

-- name: finished
SELECT {record_of_finished} FROM {schema}.history WHERE id = ANY ($1::uuid[])

-- name: letters
-- Locks: the rows, FOR UPDATE, in the order of their ids, as whoever decides about letters does.
SELECT {record_of_finished}, {letter} FROM {schema}.dead WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE

-- name: erase_history
UPDATE {schema}.history SET payload = '', checksum = 0, metadata = '{}', tags = NULL, created_by = NULL, idempotency_key = NULL,
  correlation_id = NULL, dedup_key = NULL, because = empty.because,
  result = CASE WHEN result IS NULL THEN NULL ELSE ''::bytea END,
  attempts = CASE WHEN empty.attempts IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements_text(empty.attempts)) END
FROM jsonb_to_recordset($1::jsonb) AS empty (id uuid, settled_at bigint, because text, attempts jsonb)
WHERE history.id = empty.id AND history.settled_at = empty.settled_at

-- name: erase_dead
UPDATE {schema}.dead SET payload = '', checksum = 0, metadata = '{}', tags = NULL, created_by = NULL, idempotency_key = NULL,
  correlation_id = NULL, dedup_key = NULL, because = empty.because, fingerprint = '',
  result = CASE WHEN result IS NULL THEN NULL ELSE ''::bytea END,
  attempts = CASE WHEN empty.attempts IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements_text(empty.attempts)) END
FROM jsonb_to_recordset($1::jsonb) AS empty (id uuid, settled_at bigint, because text, attempts jsonb)
WHERE dead.id = empty.id AND dead.settled_at = empty.settled_at

-- name: keys_of
DELETE FROM {schema}.idempotency WHERE tenant = $1
  AND NOT EXISTS (SELECT 1 FROM {schema}.job WHERE job.id = idempotency.id)

-- name: counters_edge
-- Tenants with nothing left are remembered for their virtual time only, and have no counters.
SELECT queue, tenant FROM {schema}.tenant_queue
WHERE delayed + ready <> 0 AND ($1::text IS NULL OR tenant = $1) AND (queue, tenant) > ($2::text, $3::text)
ORDER BY queue, tenant LIMIT 1 OFFSET $4

-- name: counters
SELECT queue, tenant, sum(waiting)::bigint, sum(running)::bigint FROM (
  SELECT queue, tenant, delayed + ready AS waiting, 0 AS running FROM {schema}.tenant_queue
  WHERE ($1::text IS NULL OR tenant = $1) AND (queue, tenant) > ($2::text, $3::text)
    AND ($5::text IS NULL OR (queue, tenant) <= ($5::text, $6::text))
  UNION ALL
  SELECT queue, tenant, delayed + ready, 0 FROM {schema}.delta
  WHERE ($1::text IS NULL OR tenant = $1) AND (queue, tenant) > ($2::text, $3::text)
    AND ($5::text IS NULL OR (queue, tenant) <= ($5::text, $6::text))
  UNION ALL
  SELECT queue, tenant, 0, 1 FROM {schema}.job
  WHERE state = {running} AND ($1::text IS NULL OR tenant = $1) AND (queue, tenant) > ($2::text, $3::text)
    AND ($5::text IS NULL OR (queue, tenant) <= ($5::text, $6::text))) counted
GROUP BY queue, tenant HAVING sum(waiting) <> 0 OR sum(running) <> 0
ORDER BY queue, tenant LIMIT $4 + 1

-- name: homes
SELECT 'hot', count(*) FROM {schema}.job WHERE $1::text IS NULL OR tenant = $1
UNION ALL SELECT 'history', count(*) FROM {schema}.history WHERE $1::text IS NULL OR tenant = $1
UNION ALL SELECT 'dead', count(*) FROM {schema}.dead WHERE $1::text IS NULL OR tenant = $1

-- name: gates
SELECT gate, count(*) FROM {schema}.job WHERE gate IS NOT NULL GROUP BY gate ORDER BY gate

-- name: keys
SELECT (SELECT count(*) FROM {schema}.idempotency WHERE $1::text IS NULL OR tenant = $1),
       (SELECT count(*) FROM {schema}.dedup WHERE $1::text IS NULL OR tenant = $1)

-- name: purpose
SELECT value FROM {schema}.meta WHERE name = 'purpose'

-- name: lock_jobs
-- From here on nobody can insert a job, and whoever was about to has ended. Two of these exclude each other.
LOCK TABLE {schema}.job IN SHARE ROW EXCLUSIVE MODE

-- name: has_jobs
SELECT EXISTS (SELECT 1 FROM {schema}.job) OR EXISTS (SELECT 1 FROM {schema}.history) OR EXISTS (SELECT 1 FROM {schema}.dead)

-- name: purpose_set
INSERT INTO {schema}.meta (name, value) VALUES ('purpose', $1) ON CONFLICT (name) DO NOTHING

-- name: unfinished_count
-- $1 queue, $2 tenant, $3 how many at most.
SELECT count(*)::int FROM (
  (SELECT 1 FROM {schema}.job WHERE tenant = $2 AND worker IS NULL AND queue = $1 LIMIT $3)
  UNION ALL (SELECT 1 FROM {schema}.job WHERE queue = $1 AND tenant = $2 AND state = {running} LIMIT $3)) jobs

-- name: flaws
SELECT place, stored, fitting, job FROM {schema}.compare_tenant_queue($1, $2)

-- name: restore
SELECT {schema}.restore_tenant_queue($1, $2)
