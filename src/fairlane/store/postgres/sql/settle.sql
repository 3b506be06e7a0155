-- Settle, renew, reclaim, expire: the ends of claims and of waits. The functions in functions/claims/ name their indexes and
-- locks; statements that call none name their own.

-- name: settle
-- `settled` is NULL where all of them are: reading ids takes as long as sending them.
SELECT at, CASE WHEN cardinality(settled) IS DISTINCT FROM cardinality($4::uuid[]) THEN coalesce(settled, '{}') END,
  doubtful, hints
FROM {schema}.settle($1::bigint, $2::text, $3::text, $4::uuid[], $5::bigint[], $6::boolean[], $7::bigint[],
  {end_from_8}, {spent})

-- name: doubtful
-- Index: job_id. Locks: the rows, FOR UPDATE, in the order of the arrays: `_reconcile` has sorted them by id.
SELECT h.*, {schema}.now_or($1::bigint) FROM unnest($2::uuid[], $3::bigint[]) a (id, fence)
CROSS JOIN LATERAL (
  SELECT {record_of_job} FROM {schema}.job j WHERE j.id = a.id AND j.fence = a.fence AND j.worker = $4::text FOR UPDATE) h

-- name: locked_elsewhere
-- Claims that match but cannot be locked now. Index: job_id. Locks: the rows, SKIP LOCKED, until the end of the statement.
SELECT a.id FROM unnest($1::uuid[], $2::bigint[]) a (id, fence)
CROSS JOIN LATERAL (SELECT FROM {schema}.job j WHERE j.id = a.id AND j.fence = a.fence AND j.worker = $3::text
                    ORDER BY j.id LIMIT 1) match
LEFT JOIN LATERAL (SELECT true AS is_free FROM {schema}.job j WHERE j.id = a.id FOR UPDATE SKIP LOCKED) f ON true
WHERE f.is_free IS NULL

-- name: renew
SELECT lease_until, stale, asked
FROM {schema}.renew($1::bigint, $2::text, $3::text, $4::bigint, $5::uuid[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bigint[])

-- name: asked
-- Jobs of a worker whose cancel was requested. Index: job_asked. Locks: none.
SELECT id FROM {schema}.job WHERE worker = $1::text AND is_cancel_asked AND ($2::text IS NULL OR tenant = $2)
ORDER BY worker, id

-- name: is_any_lapsed
SELECT at, lapsed_by, is_any, took, NOT is_any AND NOT {schema}.is_any_live_claim(lapsed_by)
FROM {schema}.is_any_lapsed($1::bigint, $2::bigint, $3::bigint)

-- name: lapsed_claims
SELECT {record_of_job}, gate FROM {schema}.lapsed_claims($1::bigint, $2::bigint, $3::int)

-- name: stuck_claims
-- Claims whose lease still runs, that began at $2 or later and are older than they may be: by their own limit, or at $3 times
-- their timeout. Reads all running jobs. Index: job_lease. Locks: the rows, SKIP LOCKED.
WITH clock AS MATERIALIZED (SELECT {schema}.now_or($1::bigint) AS now)
SELECT {record_of_job}, clock.now, gate FROM clock, {schema}.job
WHERE state = {running} AND lease_until > clock.now AND started_at >= $2::bigint
  AND started_at + coalesce(stuck_after, $3::bigint * timeout) <= clock.now
ORDER BY started_at, id LIMIT $4::int FOR UPDATE OF job SKIP LOCKED

-- name: claims_of
-- Those of these jobs ($2) of a tenant ($3) that run. Index: job_id. Locks: the rows, SKIP LOCKED, ascending by id.
SELECT h.* FROM (SELECT id FROM unnest($2::uuid[]) i (id) ORDER BY id) u
CROSS JOIN LATERAL (
  SELECT {record_of_job}, {schema}.now_or($1::bigint) AS at, gate FROM {schema}.job j
  WHERE j.id = u.id AND j.worker IS NOT NULL AND ($3::text IS NULL OR j.tenant = $3)
  ORDER BY j.id LIMIT 1 FOR UPDATE SKIP LOCKED) h

-- name: end_jobs
SELECT {schema}.end_jobs($1::bigint, true, {schema}.row_locations($2::uuid[]), {end_from_3})

-- name: queues_at_gates
SELECT {schema}.queues_at_gates($1::text[])

-- name: end_budgets
-- Claims ($2, $3) that somebody else than their worker has ended.
SELECT {schema}.report_budgets({schema}.now_or($1::bigint), NULL, $2::uuid[], $3::bigint[], array_fill(0::bigint, ARRAY[cardinality($2::uuid[])]), 'ended')

-- name: expired_jobs
-- A job that begins to wait long after its expiry (handed back, edited, sent too late) is found by a full scan.
SELECT at, ids, queues, took FROM {schema}.expired_jobs($1::bigint, $2::bigint, $3::int)
