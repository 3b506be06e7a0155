-- Cancel, condemn, run_now, edit, purge, expire: what changes while it waits. See functions/moving.sql.

-- name: whereabouts
SELECT id, queue, state FROM {s}.whereabouts($1::uuid[], $2::text)

-- name: enter
SELECT {s}.enter($1::bigint, $2::text)

-- name: fold
SELECT {s}.fold($1::bigint, $2::text)

-- name: waiting
SELECT {hot} FROM {s}.waiting_jobs($1::uuid[])

-- name: hurry
SELECT {s}.hurry($1::bigint, {s}.places_of($2::uuid[]))

-- name: edit
SELECT {s}.edit($1::uuid, $2::text, $3::text, $4::bigint, $5::bigint, $6::int, $7::bigint, $8::text[], $9::bytea,
  $10::bigint, $11::int)

-- name: ask_to_stop
SELECT asked, workers FROM {s}.ask_to_stop($1::uuid[], $2::text)

-- name: wait_for
SELECT {s}.wait_for($1::uuid)

-- name: edge
-- The last of the waiting jobs that a pass looks at, and the one after it if there is one.
SELECT enqueued_at, id FROM {s}.job WHERE (enqueued_at, id) > ($1::bigint, $2::uuid) AND worker IS NULL
ORDER BY enqueued_at, id LIMIT 2 OFFSET $3

-- name: edge_of_tenant
-- Rows are compared with their tenant, as only its index can answer that.
SELECT enqueued_at, id FROM {s}.job
WHERE (tenant, enqueued_at, id) > ($4, $1::bigint, $2::uuid) AND tenant <= $4 AND worker IS NULL
ORDER BY tenant, enqueued_at, id LIMIT 2 OFFSET $3

-- name: purged
-- After $1, $2 and up to $3, $4; $5 how many; $6 and $7 queue and task or null.
SELECT enqueued_at, id, queue FROM {s}.job
WHERE (enqueued_at, id) > ($1::bigint, $2::uuid) AND (enqueued_at, id) <= ($3::bigint, $4::uuid) AND worker IS NULL
  AND ($6::text IS NULL OR queue = $6) AND ($7::text IS NULL OR task = $7)
ORDER BY enqueued_at, id LIMIT $5

-- name: purged_of_tenant
SELECT enqueued_at, id, queue FROM {s}.job
WHERE (tenant, enqueued_at, id) > ($8, $1::bigint, $2::uuid) AND (tenant, enqueued_at, id) <= ($8, $3::bigint, $4::uuid)
  AND worker IS NULL AND ($6::text IS NULL OR queue = $6) AND ($7::text IS NULL OR task = $7)
ORDER BY tenant, enqueued_at, id LIMIT $5
