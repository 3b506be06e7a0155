-- Facts about the store itself, for inspection.py. $1 tenant or NULL. Index: job_ready, job_due, job_lease, primary keys.
-- Locks: none.

-- name: leads
SELECT name, worker, until FROM {schema}.lead ORDER BY name

-- name: tasks
-- Hops from strand to strand by the index: a million ready jobs of a strand are not read.
WITH RECURSIVE strands (queue, tenant, task) AS (
  (SELECT queue, tenant, task FROM {schema}.job WHERE state = {ready} ORDER BY queue, tenant, task LIMIT 1)
  UNION ALL
  SELECT next.* FROM strands CROSS JOIN LATERAL (
    SELECT queue, tenant, task FROM {schema}.job
    WHERE (queue, tenant, task) > (strands.queue, strands.tenant, strands.task) AND state = {ready}
    ORDER BY queue, tenant, task LIMIT 1) next)
SELECT task FROM strands WHERE $1::text IS NULL OR tenant = $1
UNION SELECT task FROM {schema}.job WHERE state = {delayed} AND ($1::text IS NULL OR tenant = $1)
UNION SELECT task FROM {schema}.job WHERE state = {running} AND ($1::text IS NULL OR tenant = $1)
ORDER BY task

-- name: first_lease
SELECT lease_until FROM {schema}.job WHERE state = {running} AND ($1::text IS NULL OR tenant = $1)
ORDER BY lease_until, id LIMIT 1

-- name: settings
SELECT (SELECT value FROM {schema}.meta WHERE name = 'schema') AS schema,
       current_setting('server_version') AS server, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
        WHERE c.relnamespace = $s${schema}$s$::regnamespace AND c.relkind = 'r')::text AS bytes

-- name: clients
-- Other sessions in this database.
SELECT count(*)::int FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()

-- name: size
-- What the tables take on disk, with their indexes.
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c WHERE c.relnamespace = $s${schema}$s$::regnamespace AND c.relkind = 'r'

-- name: parts
-- The largest tables, with their indexes; $1 how many. The rows are those of the last ANALYZE.
SELECT c.relname::text, nullif(c.reltuples, -1)::bigint, pg_total_relation_size(c.oid)::bigint
FROM pg_class c
WHERE c.relnamespace = $s${schema}$s$::regnamespace AND c.relkind = 'r'
ORDER BY 3 DESC, 1 LIMIT $1
