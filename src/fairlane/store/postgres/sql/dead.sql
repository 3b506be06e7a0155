-- Dead letters, latest death first. Index: dead_id, dead_settled, dead_tenant_settled. Locks: none.

-- name: one
SELECT {record_of_finished}, error_class, review FROM {schema}.dead WHERE id = $1

-- name: page
-- $1, $2 the position below which to read, $3 how many rows, $4 tenant, $5 queue, $6 task, $7 error class, $8 review,
-- $9 and $10 from and before which instant; NULL matches everything. The last row of the chunk and the one before
-- are always returned: they say where the next chunk starts.
SELECT {record}, error_class, review, number FROM (
  SELECT row_number() OVER () AS number, * FROM (
    {chunk}) chunk) walked
WHERE number >= $3 - 1
   OR ($5::text IS NULL OR queue = $5) AND ($6::text IS NULL OR task = $6)
  AND ($7::text IS NULL OR error_class = $7) AND ($8::text IS NULL OR review = $8)
  AND ($9::bigint IS NULL OR settled_at >= $9) AND ($10::bigint IS NULL OR settled_at < $10)
ORDER BY number

-- name: chunk
-- Of all tenants: $4 is null, and named only because a statement must name each of its parameters.
SELECT {record_of_finished}, error_class, review FROM {schema}.dead
WHERE (settled_at, id) < ($1::bigint, $2::uuid) AND $4::text IS NULL ORDER BY settled_at DESC, id DESC LIMIT $3

-- name: chunk_of_tenant
-- Compared and sorted with the tenant, because only dead_tenant_settled can answer that.
SELECT {record_of_finished}, error_class, review FROM {schema}.dead
WHERE (tenant, settled_at, id) < ($4, $1::bigint, $2::uuid) AND tenant >= $4
ORDER BY tenant DESC, settled_at DESC, id DESC LIMIT $3

-- name: counts
-- $1 tenant or null, $2 to $4 the last count given, $5 how many. Reads all dead letters: people keep them few.
SELECT tenant, queue, review, count(*) FROM {schema}.dead
WHERE ($1::text IS NULL OR tenant = $1) AND (tenant, queue, review) > ($2::text, $3::text, $4::text)
GROUP BY tenant, queue, review ORDER BY tenant, queue, review LIMIT $5
