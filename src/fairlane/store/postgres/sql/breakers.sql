-- Circuit breakers: calls of functions/policies/breaker.sql, which names its indexes and locks.

-- name: read
-- $1, $2 names and tenants.
SELECT b.name, b.tenant, b.revision, b.half_opened_at, b.permits, b.state FROM {schema}.breaker b
WHERE (b.name, b.tenant) IN (SELECT * FROM unnest($1::text[], $2::text[]))

-- name: running
SELECT {schema}.running_jobs($1::uuid[])

-- name: write
-- $1 now or null, $2 rows of `breaker` with the revisions that were read, then the columns of journal entries.
SELECT {schema}.write_breakers($1, $2::jsonb, $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[])

-- name: page
-- $1 one name or null; $2, $3 the key after which to read; $4 how many, $5 the most waiting strands to count.
SELECT b.name, b.tenant, b.revision, b.half_opened_at, b.permits, b.state, waiting.strands
FROM (SELECT * FROM {schema}.breaker WHERE ($1::text IS NULL OR name = $1) AND (name, tenant) > ($2::text, $3::text)
      ORDER BY name, tenant LIMIT $4) b,
  LATERAL (SELECT count(*) AS strands FROM (
    SELECT 1 FROM {schema}.strand WHERE gate = rtrim('breaker ' || b.name || ' ' || b.tenant) LIMIT $5) one) waiting
ORDER BY b.name, b.tenant

-- name: queues
SELECT {schema}.queues_at_gates($1::text[])

-- name: holding
-- $1 now, $2 name, $3 tenant.
SELECT subject, until FROM {schema}.breaker_block($1::bigint, $2, $3, '{}') WHERE subject IS NOT NULL
