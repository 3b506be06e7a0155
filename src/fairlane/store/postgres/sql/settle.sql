-- Settle, renew, reclaim, expire: the ends of claims and of waits. See functions/settle.sql, end_jobs.sql, renew.sql.

-- name: settle
-- `settled` is null where all of them are: reading ids takes as long as sending them.
SELECT at, CASE WHEN cardinality(settled) IS DISTINCT FROM cardinality($4::uuid[]) THEN coalesce(settled, '{}') END,
  doubtful, hints
FROM {s}.settle($1::bigint, $2::text, $3::text, $4::uuid[], $5::bigint[], $6::boolean[], $7::bigint[], $8::text[],
  $9::text[], $10::bigint[], $11::int[], $12::int[], $13::int[], $14::int[], $15::boolean[], $16::text[],
  $17::boolean[], $18::bytea[])

-- name: doubtful
-- Rows of running jobs, locked in the order of their ids.
SELECT {s}.now_or($1::bigint), h.* FROM unnest($2::uuid[], $3::bigint[]) a (id, fence)
CROSS JOIN LATERAL (
  SELECT {hot} FROM {s}.job j WHERE j.id = a.id AND j.fence = a.fence AND j.worker = $4::text FOR UPDATE) h

-- name: held_elsewhere
-- Claims that match but cannot be locked now.
SELECT a.id FROM unnest($1::uuid[], $2::bigint[]) a (id, fence)
CROSS JOIN LATERAL (SELECT FROM {s}.job j WHERE j.id = a.id AND j.fence = a.fence AND j.worker = $3::text
                    ORDER BY j.id LIMIT 1) match
LEFT JOIN LATERAL (SELECT true AS is_free FROM {s}.job j WHERE j.id = a.id FOR UPDATE SKIP LOCKED) f ON true
WHERE f.is_free IS NULL

-- name: renew
SELECT lease_until, stale, asked
FROM {s}.renew($1::bigint, $2::text, $3::text, $4::bigint, $5::uuid[], $6::bigint[], $7::bytea[])

-- name: asked
SELECT id FROM {s}.job WHERE worker = $1::text AND is_cancel_asked AND ($2::text IS NULL OR tenant = $2)
ORDER BY worker, id

-- name: is_any_lapsed
SELECT at, lapsed_by, is_any, took, NOT is_any AND NOT {s}.is_any_held(lapsed_by)
FROM {s}.is_any_lapsed($1::bigint, $2::bigint, $3::bigint)

-- name: lapsed
SELECT gate, is_alone, {hot} FROM {s}.lapsed($1::bigint, $2::bigint, $3::int)

-- name: end_jobs
SELECT {s}.end_jobs($1::bigint, true, {s}.places_of($2::uuid[]), $3::text[], $4::text[], $5::bigint[], $6::int[],
  $7::int[], $8::int[], $9::int[], $10::boolean[], $11::text[], $12::boolean[], $13::bytea[])

-- name: queues_at
SELECT {s}.queues_at($1::text[])

-- name: expired
-- A job that waits again long after its time, handed back, edited or sent too late, is met by a look from the first on.
SELECT at, ids, queues, took FROM {s}.expired($1::bigint, $2::bigint, $3::int)
