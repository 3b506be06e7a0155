-- Dead letters: read, tally, decide. Index: dead_id, dead_settled, dead_tenant_settled, dead_fingerprint, dead_review,
-- dead_new_run. Locks: none, except where a statement says so.
-- Parameters of a scan: $1, $2 the position below which to read, $3 how many rows, $4 tenant, $5 queue, $6 task, $7 error
-- class, $8 fingerprint, $9 review, $10 whether acknowledged, $11 the instant from which on; NULL matches everything, except
-- for $11.

-- name: one
SELECT {record_of_finished}, {letter} FROM {schema}.dead WHERE id = $1

-- name: letter
{record_of_finished}, {letter}, is_acknowledged

-- name: cause
id, tenant, queue, task, settled_at, {letter}, is_acknowledged

-- name: chunk
SELECT {columns} FROM {schema}.dead
WHERE (settled_at, id) < ($1::bigint, $2::uuid) AND settled_at >= $11::bigint
ORDER BY settled_at DESC, id DESC LIMIT $3

-- name: chunk_of_tenant
-- Compared and sorted with the tenant, because only dead_tenant_settled can answer that. The next two alike.
SELECT {columns} FROM {schema}.dead
WHERE (tenant, settled_at, id) < ($4, $1::bigint, $2::uuid) AND (tenant, settled_at) >= ($4, $11::bigint)
ORDER BY tenant DESC, settled_at DESC, id DESC LIMIT $3

-- name: chunk_of_fingerprint
SELECT {columns} FROM {schema}.dead
WHERE (fingerprint, settled_at, id) < ($8, $1::bigint, $2::uuid) AND (fingerprint, settled_at) >= ($8, $11::bigint)
ORDER BY fingerprint DESC, settled_at DESC, id DESC LIMIT $3

-- name: chunk_of_review
SELECT {columns} FROM {schema}.dead
WHERE (review, settled_at, id) < ($9, $1::bigint, $2::uuid) AND (review, settled_at) >= ($9, $11::bigint)
ORDER BY review DESC, settled_at DESC, id DESC LIMIT $3

-- name: matches
($4::text IS NULL OR tenant = $4) AND ($5::text IS NULL OR queue = $5) AND ($6::text IS NULL OR task = $6)
  AND ($7::text IS NULL OR error_class = $7) AND ($8::text IS NULL OR fingerprint = $8)
  AND ($9::text IS NULL OR review = $9) AND ($10::boolean IS NULL OR is_acknowledged = $10)

-- name: page
-- The last row of the chunk and the one before are always returned: they say where the next chunk starts.
SELECT {record}, {letter}, number FROM (
  SELECT row_number() OVER () AS number, * FROM ({chunk}) chunk) walked
WHERE number >= $3 - 1 OR ({matches})
ORDER BY number

-- name: tally
-- First the groups of what matches, then a row without a tenant: how many were read, and the last of them. One row more than
-- asked for is read, and left out, to know whether there are more. The rows of a group come as they were read, the last death
-- first.
WITH walked AS MATERIALIZED (
  SELECT row_number() OVER () AS number, * FROM ({chunk}) chunk)
SELECT fingerprint, error_class, tenant, queue, task, review, count(*) AS letters, min(settled_at) AS first_at,
       max(settled_at) AS last_at, substr(min(((100000 + number)::text || id) COLLATE "C"), 7)::uuid AS sample
FROM walked WHERE number < $3 AND ({matches})
GROUP BY 1, 2, 3, 4, 5, 6
UNION ALL
(SELECT NULL, NULL, NULL, NULL, NULL, NULL, (SELECT count(*) FROM walked), NULL, settled_at, id FROM walked WHERE number < $3
 ORDER BY number DESC LIMIT 1)

-- name: counts
-- $1 tenant or null, $2 to $4 the last count given, $5 how many. Reads all dead letters: people keep them few.
SELECT tenant, queue, review, count(*) FROM {schema}.dead
WHERE ($1::text IS NULL OR tenant = $1) AND (tenant, queue, review) > ($2::text, $3::text, $4::text)
GROUP BY tenant, queue, review ORDER BY tenant, queue, review LIMIT $5

-- name: now
SELECT {schema}.now_or($1)

-- name: locked
-- $1 ids in their order, $2 tenant or null. Locks: the rows, FOR UPDATE, in that order. Only dead_id can answer BETWEEN ...
-- ORDER BY id.
SELECT h.* FROM unnest($1::uuid[]) a (id)
CROSS JOIN LATERAL (
  SELECT {record_without_contents}, {letter} FROM {schema}.dead
  WHERE dead.id BETWEEN a.id AND a.id AND ($2::text IS NULL OR tenant = $2) ORDER BY dead.id LIMIT 1 FOR UPDATE) h

-- name: locked_if_free
-- The same without those that somebody else has locked. Locks: the rows, SKIP LOCKED.
SELECT h.* FROM unnest($1::uuid[]) a (id)
CROSS JOIN LATERAL (
  SELECT {record_without_contents}, {letter} FROM {schema}.dead
  WHERE dead.id BETWEEN a.id AND a.id AND ($2::text IS NULL OR tenant = $2) ORDER BY dead.id LIMIT 1
  FOR UPDATE SKIP LOCKED) h

-- name: write
SELECT {schema}.write_reviews({schema}.letter_locations($1::uuid[]), $2::text[], $3::bytea[], $4::boolean[], $5::boolean[],
  $6::bigint[], $7::uuid[])

-- name: delete
-- The caller has locked the rows.
WITH gone AS (
  DELETE FROM {schema}.dead WHERE ctid = ANY ({schema}.letter_locations($1::uuid[])) RETURNING tenant, queue, state)
INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs)
SELECT tenant, queue, state, -count(*) FROM gone GROUP BY tenant, queue, state

-- name: open_runs
-- Letters whose new job is not known to have ended, in the order of that job, after $1, $2 of them; where it has ended, how,
-- and whether it is stored no longer. One statement looks at all homes, so a job that moves meanwhile is met.
SELECT letter.id, letter.new_run, found.state, found.settled_at, found.id IS NULL AS is_gone
FROM (SELECT id, new_run FROM {schema}.dead WHERE new_run > $1::uuid ORDER BY new_run LIMIT $2) letter
LEFT JOIN LATERAL (
  SELECT id, NULL AS state, NULL::bigint AS settled_at FROM {schema}.job WHERE job.id = letter.new_run
  UNION ALL SELECT id, state, settled_at FROM {schema}.history WHERE history.id = letter.new_run
  UNION ALL SELECT id, state, settled_at FROM {schema}.dead WHERE dead.id = letter.new_run
  LIMIT 1) found ON true
ORDER BY letter.new_run
