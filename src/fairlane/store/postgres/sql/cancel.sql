-- Change jobs while they wait: cancel, move to dead, edit, run now, purge. See functions/jobs/cancel.sql and edit.sql.
-- Index of purge: job_time, job_tenant. Locks: see the functions; purge reads without any.

-- name: states_of
SELECT id, queue, state FROM {schema}.states_of($1::uuid[], $2::text)

-- name: lock_and_apply
SELECT {schema}.lock_and_apply($1::bigint, $2::text)

-- name: apply_all_deltas
SELECT {schema}.apply_all_deltas($1::bigint, $2::text)

-- name: waiting
SELECT {record_of_job} FROM {schema}.waiting_jobs($1::uuid[])

-- name: run_now
SELECT {schema}.run_now($1::bigint, {schema}.row_locations($2::uuid[]))

-- name: edit
SELECT {schema}.edit($1::uuid, $2::text, $3::text, $4::bigint, $5::bigint, $6::int, $7::bigint, $8::text[], $9::bytea,
  $10::bigint, $11::int)

-- name: ask_to_stop
SELECT asked, workers FROM {schema}.ask_to_stop($1::uuid[], $2::text)

-- name: lock_running
-- Those of these jobs, in the order of the array, that run and that nobody has locked. Index: job_id. Locks: the rows, SKIP
-- LOCKED.
SELECT h.* FROM unnest($1::uuid[]) a (id)
CROSS JOIN LATERAL (
  SELECT {record_of_job} FROM {schema}.job j WHERE j.id = a.id AND j.worker IS NOT NULL FOR UPDATE SKIP LOCKED) h

-- name: wait_for_row
SELECT {schema}.wait_for_row($1::uuid)

-- name: edge
-- The last waiting job that a pass looks at, and the one after it if there is one.
SELECT enqueued_at, id FROM {schema}.job WHERE (enqueued_at, id) > ($1::bigint, $2::uuid) AND worker IS NULL
ORDER BY enqueued_at, id LIMIT 2 OFFSET $3

-- name: edge_of_tenant
-- Compared with the tenant, because only job_tenant can answer that.
SELECT enqueued_at, id FROM {schema}.job
WHERE (tenant, enqueued_at, id) > ($4, $1::bigint, $2::uuid) AND tenant <= $4 AND worker IS NULL
ORDER BY tenant, enqueued_at, id LIMIT 2 OFFSET $3

-- name: purged
-- After $1, $2 and up to $3, $4; $5 how many; $6 and $7 queue and task or null.
SELECT enqueued_at, id, queue FROM {schema}.job
WHERE (enqueued_at, id) > ($1::bigint, $2::uuid) AND (enqueued_at, id) <= ($3::bigint, $4::uuid) AND worker IS NULL
  AND ($6::text IS NULL OR queue = $6) AND ($7::text IS NULL OR task = $7)
ORDER BY enqueued_at, id LIMIT $5

-- name: purged_of_tenant
SELECT enqueued_at, id, queue FROM {schema}.job
WHERE (tenant, enqueued_at, id) > ($8, $1::bigint, $2::uuid) AND (tenant, enqueued_at, id) <= ($8, $3::bigint, $4::uuid)
  AND worker IS NULL AND ($6::text IS NULL OR queue = $6) AND ($7::text IS NULL OR task = $7)
ORDER BY tenant, enqueued_at, id LIMIT $5
