-- Read jobs over all homes, newest enqueue first, and what `explain` asks about one. One statement reads all homes, so a job
-- that moves meanwhile is met once.
-- Parameters of a scan: $1, $2 the position below which and $3, $4 from which on to read, $5 how many rows, $6 tenant,
-- $7 correlation id, $8 states, $9 queue, $10 task, $11 parent, $12 tag, $13 creator; NULL matches everything.
-- Index: job_id, job_time, job_tenant, job_correlation, job_ready, job_due, job_running, and those of history and dead with
-- the same names. Locks: none.

-- name: by_id
SELECT {record_of_job} FROM {schema}.job WHERE id = ANY ($1::uuid[])
UNION ALL SELECT {record_of_finished} FROM {schema}.history WHERE id = ANY ($1::uuid[])
UNION ALL SELECT {record_of_finished} FROM {schema}.dead WHERE id = ANY ($1::uuid[])

-- name: waiting
SELECT {record_of_job} FROM (SELECT * FROM {schema}.job WHERE worker IS NULL) waiting

-- name: running
-- Only as many as workers have slots, and in no index by time: sorted.
SELECT {record_of_job} FROM (SELECT * FROM {schema}.job WHERE state = {running} OFFSET 0) running

-- name: history
SELECT {record_of_finished} FROM {schema}.history

-- name: dead
SELECT {record_of_finished} FROM {schema}.dead

-- name: chunk
({home} WHERE (enqueued_at, id) < ($1::bigint, $2::uuid) AND (enqueued_at, id) >= ($3::bigint, $4::uuid)
 ORDER BY enqueued_at DESC, id DESC LIMIT $5)

-- name: chunk_of_tenant
-- Compared and sorted with the tenant, because no index by time alone can answer that, whatever the planner's estimates.
({home} WHERE (tenant, enqueued_at, id) < ($6, $1::bigint, $2::uuid)
   AND (tenant, enqueued_at, id) >= ($6, $3::bigint, $4::uuid)
 ORDER BY tenant DESC, enqueued_at DESC, id DESC LIMIT $5)

-- name: chunk_of_correlation
({home} WHERE (correlation_id, enqueued_at, id) < ($7, $1::bigint, $2::uuid)
   AND (correlation_id, enqueued_at, id) >= ($7, $3::bigint, $4::uuid) AND correlation_id IS NOT NULL
 ORDER BY correlation_id DESC, enqueued_at DESC, id DESC LIMIT $5)

-- name: chosen
-- The last row of the chunk and the one before are always returned: they say where the next chunk starts.
SELECT {record}, number FROM (
  SELECT row_number() OVER () AS number, * FROM (
    SELECT * FROM ({chunks}) homes
    ORDER BY enqueued_at DESC, id DESC LIMIT $5) chunk) walked
WHERE number >= $5 - 1
   OR ($6::text IS NULL OR tenant = $6) AND ($8::text[] IS NULL OR state = ANY ($8))
  AND ($7::text IS NULL OR correlation_id = $7)
  AND ($9::text IS NULL OR queue = $9) AND ($10::text IS NULL OR task = $10)
  AND ($11::uuid IS NULL OR parent_id = $11) AND ($12::text IS NULL OR $12 = ANY (tags))
  AND ($13::text IS NULL OR created_by = $13)
ORDER BY number

-- name: first_in_line
-- $1 tenants and $2 queues of the lines. The tasks of a line are found one by one in job_ready, which is in their order; each
-- has its first job first.
SELECT line.tenant, line.queue, first.id, first.run_at
FROM unnest($1::text[], $2::text[]) AS line (tenant, queue)
CROSS JOIN LATERAL (
  WITH RECURSIVE tasks (task) AS (
    (SELECT task FROM {schema}.job
     WHERE queue = line.queue AND tenant = line.tenant AND state = {ready} ORDER BY task LIMIT 1)
    UNION ALL
    SELECT (SELECT job.task FROM {schema}.job
            WHERE job.queue = line.queue AND job.tenant = line.tenant AND job.state = {ready} AND job.task > tasks.task
            ORDER BY job.task LIMIT 1)
    FROM tasks WHERE tasks.task IS NOT NULL)
  SELECT head.id, head.run_at FROM tasks CROSS JOIN LATERAL (
    SELECT id, run_at, sort_key FROM {schema}.job
    WHERE queue = line.queue AND tenant = line.tenant AND task = tasks.task AND state = {ready}
    ORDER BY sort_key, id LIMIT 1) head
  ORDER BY head.sort_key, head.id LIMIT 1) first

-- name: length
-- How many current jobs are in some states, up to $1. Each state has its own index; several together have none.
SELECT count(*) FROM (SELECT 1 FROM ({lists}) listed LIMIT $1) counted

-- name: list
SELECT 1 FROM {schema}.job WHERE state = {state}

-- name: listed
-- OFFSET 0 keeps the list apart: by time, all jobs would be read to find the few.
SELECT {record_of_job} FROM (SELECT * FROM {schema}.job WHERE state = {state} OFFSET 0) listed

-- name: ahead
-- How many ready jobs of the tenant come before this one. Hops from task to task by the index, so a million jobs behind
-- this one are not read. Rows are compared, because no other index than job_ready can answer that.
WITH RECURSIVE tasks (task) AS (
  SELECT (SELECT task FROM {schema}.job WHERE (queue, tenant) BETWEEN ($1, $2) AND ($1, $2) AND state = {ready}
          ORDER BY queue, tenant, task LIMIT 1)
  UNION ALL
  SELECT (SELECT task FROM {schema}.job
          WHERE (queue, tenant, task) > ($1, $2, tasks.task) AND (queue, tenant) <= ($1, $2) AND state = {ready}
          ORDER BY queue, tenant, task LIMIT 1)
  FROM tasks WHERE task IS NOT NULL)
SELECT count(*) FROM (
  SELECT 1 FROM tasks CROSS JOIN LATERAL (
    SELECT 1 FROM {schema}.job
    WHERE (queue, tenant, task) >= ($1, $2, tasks.task) AND (queue, tenant, task, sort_key, id) < ($1, $2, tasks.task,
      $3, $4)
      AND state = {ready} LIMIT 10000) before LIMIT 10000) counted

-- name: tenant_queue
SELECT next_allowed_at, rate_id FROM {schema}.tenant_queue WHERE queue = $1
  AND tenant = $2 ORDER BY queue, tenant, ver DESC LIMIT 1

-- name: running_of
SELECT count(*) FROM {schema}.job WHERE queue = $1 AND tenant = $2 AND state = {running}

-- name: rate_state
SELECT next_allowed_at, rate_id FROM {schema}.rate_state WHERE kind = $1 AND name = $2 ORDER BY kind, name, ver DESC LIMIT 1

-- name: at_gate
SELECT count(*) FROM {schema}.job WHERE gate = $1

-- name: live
SELECT record FROM {schema}.worker WHERE beat_at >= $1
