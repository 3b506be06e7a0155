-- Reading: jobs over all homes, newest enqueue first; what goes before a job. One statement reads all homes, so that a
-- job which moves meanwhile is met once. Parameters of a walk: $1, $2 the place below which and $3, $4 from which on to
-- read, $5 how many rows, $6 tenant, $7 correlation id, $8 states, $9 queue, $10 task, $11 parent, $12 tag; null lets
-- everything through. Index: job_id, job_time, job_tenant, job_correlation, job_ready, job_due, job_running, and those
-- of history and dead with the same names. Locks: none.

-- name: by_id
SELECT {whole_hot} FROM {s}.job WHERE id = ANY ($1::uuid[])
UNION ALL SELECT {whole_finished} FROM {s}.history WHERE id = ANY ($1::uuid[])
UNION ALL SELECT {whole_finished} FROM {s}.dead WHERE id = ANY ($1::uuid[])

-- name: waiting
SELECT {whole_hot} FROM (SELECT * FROM {s}.job WHERE worker IS NULL) waiting

-- name: running
-- As many as there are slots of workers, in no order: sorted.
SELECT {whole_hot} FROM (SELECT * FROM {s}.job WHERE state = {running} OFFSET 0) running

-- name: history
SELECT {whole_finished} FROM {s}.history

-- name: dead
SELECT {whole_finished} FROM {s}.dead

-- name: stretch
({home} WHERE (enqueued_at, id) < ($1::bigint, $2::uuid) AND (enqueued_at, id) >= ($3::bigint, $4::uuid)
 ORDER BY enqueued_at DESC, id DESC LIMIT $5)

-- name: stretch_of_tenant
-- Rows are compared and sorted with their tenant, as no index by time alone can answer that, whatever the planner thinks
-- of how many rows there are.
({home} WHERE (tenant, enqueued_at, id) < ($6, $1::bigint, $2::uuid)
   AND (tenant, enqueued_at, id) >= ($6, $3::bigint, $4::uuid)
 ORDER BY tenant DESC, enqueued_at DESC, id DESC LIMIT $5)

-- name: stretch_of_correlation
({home} WHERE (correlation_id, enqueued_at, id) < ($7, $1::bigint, $2::uuid)
   AND (correlation_id, enqueued_at, id) >= ($7, $3::bigint, $4::uuid) AND correlation_id IS NOT NULL
 ORDER BY correlation_id DESC, enqueued_at DESC, id DESC LIMIT $5)

-- name: chosen
-- The last row of the stretch and the one before come in any case: they say where the next stretch begins.
SELECT number, {whole} FROM (
  SELECT row_number() OVER () AS number, * FROM (
    SELECT * FROM ({stretches}) homes
    ORDER BY enqueued_at DESC, id DESC LIMIT $5) stretch) walked
WHERE number >= $5 - 1
   OR ($6::text IS NULL OR tenant = $6) AND ($8::text[] IS NULL OR state = ANY ($8))
  AND ($7::text IS NULL OR correlation_id = $7)
  AND ($9::text IS NULL OR queue = $9) AND ($10::text IS NULL OR task = $10)
  AND ($11::uuid IS NULL OR parent_id = $11) AND ($12::text IS NULL OR $12 = ANY (tags))
ORDER BY number

-- name: length
-- How many current jobs are in some states, up to $1. Each state has an index of its own, several together have none.
SELECT count(*) FROM (SELECT 1 FROM ({lists}) listed LIMIT $1) counted

-- name: list
SELECT 1 FROM {s}.job WHERE state = {state}

-- name: listed
-- OFFSET 0 keeps the list inside: by time, all jobs would be walked to find the few.
SELECT {whole_hot} FROM (SELECT * FROM {s}.job WHERE state = {state} OFFSET 0) listed

-- name: ahead
-- From one task to the next by the index: a tenant's million ready jobs behind this one are not read. Rows are compared,
-- as no other index than `job_ready` can answer that.
WITH RECURSIVE tasks (task) AS (
  SELECT (SELECT task FROM {s}.job WHERE (queue, tenant) BETWEEN ($1, $2) AND ($1, $2) AND state = {ready}
          ORDER BY queue, tenant, task LIMIT 1)
  UNION ALL
  SELECT (SELECT task FROM {s}.job
          WHERE (queue, tenant, task) > ($1, $2, tasks.task) AND (queue, tenant) <= ($1, $2) AND state = {ready}
          ORDER BY queue, tenant, task LIMIT 1)
  FROM tasks WHERE task IS NOT NULL)
SELECT count(*) FROM (
  SELECT 1 FROM tasks CROSS JOIN LATERAL (
    SELECT 1 FROM {s}.job
    WHERE (queue, tenant, task) >= ($1, $2, tasks.task) AND (queue, tenant, task, sort_key, id) < ($1, $2, tasks.task, $3, $4)
      AND state = {ready} LIMIT 10000) before LIMIT 10000) counted

-- name: turn
SELECT arrival, pace FROM {s}.turn WHERE queue = $1 AND tenant = $2 ORDER BY queue, tenant, ver DESC LIMIT 1

-- name: running_of
SELECT count(*) FROM {s}.job WHERE queue = $1 AND tenant = $2 AND state = {running}

-- name: pace
SELECT arrival, pace FROM {s}.pace WHERE kind = $1 AND name = $2 ORDER BY kind, name, ver DESC LIMIT 1

-- name: at_gate
SELECT count(*) FROM {s}.job WHERE gate = $1

-- name: live
SELECT card FROM {s}.worker WHERE beat_at >= $1
