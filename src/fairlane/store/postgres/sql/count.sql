-- Count jobs by tenant, queue and state, a page at a time. One statement reads sums and what is not added to them yet, at
-- one instant, so each count is exact and nobody waits.
-- Parameters: $1 tenant and $2 queue, or NULL; $3 to $5 the last count returned; $6 how many; of `page` also $7, $8 the last
-- (tenant, queue) to look at, or NULL. Index: tenant_queue_name, job_running, the primary key of tally. Locks: none.

-- name: edge
-- The last (tenant, queue) that a page looks at: deltas and running jobs beyond it come with later pages.
SELECT tenant, queue FROM (
  (SELECT tenant, queue FROM {schema}.tenant_queue
   WHERE ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR queue = $2) AND (tenant, queue) >= ($3::text, $4::text)
   ORDER BY tenant, queue LIMIT 1 OFFSET $6)
  UNION ALL
  (SELECT tenant, queue FROM {schema}.tally
   WHERE ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR queue = $2)
     AND (tenant, queue, state) > ($3::text, $4::text, $5::text)
   ORDER BY tenant, queue, state LIMIT 1 OFFSET $6)) edges
ORDER BY tenant, queue LIMIT 1

-- name: page
SELECT tenant, queue, state, sum(jobs)::bigint AS jobs FROM (
  SELECT tenant, queue, waiting.state, waiting.jobs FROM {schema}.tenant_queue
  CROSS JOIN LATERAL (VALUES ({delayed}, delayed::bigint), ({ready}, ready::bigint)) waiting (state, jobs)
  WHERE ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR queue = $2)
    AND (tenant, queue) >= ($3::text, $4::text) AND ($7::text IS NULL OR (tenant, queue) <= ($7::text, $8::text))
  UNION ALL
  SELECT tenant, queue, waiting.state, waiting.jobs FROM {schema}.delta
  CROSS JOIN LATERAL (VALUES ({delayed}, delayed::bigint), ({ready}, ready::bigint)) waiting (state, jobs)
  WHERE ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR queue = $2)
    AND (tenant, queue) >= ($3::text, $4::text) AND ($7::text IS NULL OR (tenant, queue) <= ($7::text, $8::text))
  UNION ALL
  SELECT tenant, queue, {running}, 1 FROM {schema}.job
  WHERE state = {running} AND ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR queue = $2)
    AND (tenant, queue) >= ($3::text, $4::text) AND ($7::text IS NULL OR (tenant, queue) <= ($7::text, $8::text))
  UNION ALL
  SELECT tenant, queue, state, jobs FROM {schema}.tally
  WHERE ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR queue = $2)
    AND (tenant, queue) >= ($3::text, $4::text) AND ($7::text IS NULL OR (tenant, queue) <= ($7::text, $8::text))
  UNION ALL
  SELECT tenant, queue, state, jobs FROM {schema}.tally_delta
  WHERE ($1::text IS NULL OR tenant = $1) AND ($2::text IS NULL OR queue = $2)
    AND (tenant, queue) >= ($3::text, $4::text) AND ($7::text IS NULL OR (tenant, queue) <= ($7::text, $8::text))
) counted
WHERE (tenant, queue, state) > ($3::text, $4::text, $5::text)
GROUP BY tenant, queue, state HAVING sum(jobs) > 0
ORDER BY tenant, queue, state LIMIT $6 + 1
