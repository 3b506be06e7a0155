-- What a person asks of the store itself. $1 tenant or null. Index: job_lease, job_tenant, primary keys. Locks: none.

-- name: leads
SELECT name, worker, until FROM {s}.lead ORDER BY name

-- name: tasks
SELECT DISTINCT task FROM {s}.job WHERE $1::text IS NULL OR tenant = $1 ORDER BY task

-- name: first_lease
SELECT min(lease_until) FROM {s}.job WHERE state = {running} AND ($1::text IS NULL OR tenant = $1)

-- name: settings
SELECT (SELECT value FROM {s}.meta WHERE name = 'schema') AS schema,
       current_setting('server_version') AS server, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
        WHERE c.relnamespace = $s${s}$s$::regnamespace AND c.relkind = 'r')::text AS bytes
