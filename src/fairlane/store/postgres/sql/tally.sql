-- Tally jobs that meet filters, oldest enqueue first, over all homes at once, so a job that moves meanwhile is met once.
-- Parameters: $1, $2 the position after which and $3, $4 before which to read, $5 how many rows, $6 tenant, $7 correlation
-- id, $8 states, $9 queue, $10 task, $11 parent, $12 tag, $13 creator; NULL matches everything.
-- Index: job_time, job_tenant, job_correlation, job_running, and those of history and dead with the same names. Locks: none.

-- name: waiting
SELECT {filtered} FROM (SELECT * FROM {schema}.job WHERE worker IS NULL) waiting

-- name: running
-- Only as many as workers have slots, and in no index by time: sorted.
SELECT {filtered} FROM (SELECT * FROM {schema}.job WHERE state = {running} OFFSET 0) running

-- name: history
SELECT {filtered} FROM {schema}.history

-- name: dead
SELECT {filtered} FROM {schema}.dead

-- name: listed
-- OFFSET 0 keeps the list apart: by time, all jobs would be read to find the few.
SELECT {filtered} FROM (SELECT * FROM {schema}.job WHERE state = {state} OFFSET 0) listed

-- name: chunk
({home} WHERE (enqueued_at, id) > ($1::bigint, $2::uuid) AND (enqueued_at, id) < ($3::bigint, $4::uuid)
 ORDER BY enqueued_at, id LIMIT $5)

-- name: chunk_of_tenant
({home} WHERE (tenant, enqueued_at, id) > ($6, $1::bigint, $2::uuid)
   AND (tenant, enqueued_at, id) < ($6, $3::bigint, $4::uuid)
 ORDER BY tenant, enqueued_at, id LIMIT $5)

-- name: chunk_of_correlation
-- Rows of other tenants are skipped: they must not be counted, not even as looked at.
({home} WHERE (correlation_id, enqueued_at, id) > ($7, $1::bigint, $2::uuid)
   AND (correlation_id, enqueued_at, id) < ($7, $3::bigint, $4::uuid) AND correlation_id IS NOT NULL
   AND ($6::text IS NULL OR tenant = $6)
 ORDER BY correlation_id, enqueued_at, id LIMIT $5)

-- name: tally
-- First the groups of what matches, then a row without a queue: how many were looked at, and the last of them. One row
-- more than asked for is read, and left out, to know whether there are more.
WITH walked AS MATERIALIZED (
  SELECT row_number() OVER () AS number, * FROM (
    SELECT * FROM ({chunks}) homes ORDER BY enqueued_at, id LIMIT $5) chunk)
SELECT queue, state, split_part(coalesce(because, ''), ':', 1) AS reason, count(*) AS jobs, min(enqueued_at) AS first_at,
  NULL::uuid AS id
FROM walked
WHERE number < $5
  AND ($6::text IS NULL OR tenant = $6) AND ($8::text[] IS NULL OR state = ANY ($8))
  AND ($7::text IS NULL OR correlation_id = $7)
  AND ($9::text IS NULL OR queue = $9) AND ($10::text IS NULL OR task = $10)
  AND ($11::uuid IS NULL OR parent_id = $11) AND ($12::text IS NULL OR $12 = ANY (tags))
  AND ($13::text IS NULL OR created_by = $13)
GROUP BY 1, 2, 3
UNION ALL
(SELECT NULL, NULL, NULL, (SELECT count(*) FROM walked), enqueued_at, id FROM walked WHERE number < $5
 ORDER BY number DESC LIMIT 1)

-- name: own
-- The job whose generated correlation id is asked for is in no index.
SELECT {record_of_job} FROM {schema}.job WHERE id = $1 AND correlation_id IS NULL
UNION ALL SELECT {record_of_finished} FROM {schema}.history WHERE id = $1 AND correlation_id IS NULL
UNION ALL SELECT {record_of_finished} FROM {schema}.dead WHERE id = $1 AND correlation_id IS NULL
