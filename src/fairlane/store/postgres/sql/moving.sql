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

-- name: purged
-- $1 to $3 tenant, queue and task or null, $4 how many, after $5, $6 and up to $7, $8.
SELECT enqueued_at, id, queue FROM {s}.job
WHERE (enqueued_at, id) > ($5::bigint, $6::uuid) AND (enqueued_at, id) <= ($7::bigint, $8::uuid) AND worker IS NULL
  AND ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR queue = $2) AND ($3::text IS NULL OR task = $3)
ORDER BY enqueued_at, id LIMIT $4
