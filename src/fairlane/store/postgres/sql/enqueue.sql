-- Enqueue: one call where nothing can refuse the batch; else the facts, the keys, and the jobs that are admitted. The same
-- statements run inside an application's transaction. See functions/jobs/enqueue.sql and idempotency.sql.

-- name: enqueue
SELECT {schema}.enqueue($1::bigint, $2::text[], $3::int, $4::int, $5::bytea[],
  {new_from_6})

-- name: insert_jobs
SELECT {schema}.insert_jobs($1::bigint, {new_from_2})

-- name: admission_facts
SELECT * FROM {schema}.admission_facts($1::bigint, $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[])

-- name: take_idempotency_keys
SELECT unnest(tenants), unnest(keys) FROM {schema}.take_idempotency_keys($1::text[], $2::text[], $3::uuid[], $4::bytea[])

-- name: take_dedup_keys
SELECT unnest(tenants), unnest(tasks), unnest(keys)
FROM {schema}.take_dedup_keys($1::text[], $2::text[], $3::text[], $4::uuid[])

-- name: key_holders
SELECT k.tenant, k.key, k.id, k.fingerprint, k.state, k.settled_at FROM unnest($1::text[], $2::text[]) u (tenant, key)
CROSS JOIN LATERAL (SELECT * FROM {schema}.idempotency i WHERE i.tenant = u.tenant AND i.key = u.key
                    ORDER BY i.tenant, i.key LIMIT 1) k

-- name: dedup_holders
SELECT k.tenant, k.task, k.key, k.id FROM unnest($1::text[], $2::text[], $3::text[]) u (tenant, task, key)
CROSS JOIN LATERAL (SELECT * FROM {schema}.dedup d WHERE d.tenant = u.tenant AND d.task = u.task AND d.key = u.key
                    ORDER BY d.tenant, d.task, d.key LIMIT 1) k

-- name: lock_dead_keys
SELECT tenant, key FROM {schema}.lock_dead_keys($1::text[], $2::text[])

-- name: release_idempotency_keys
SELECT {schema}.release_idempotency_keys($1::text[], $2::text[])

-- name: release_dedup_keys
SELECT {schema}.release_dedup_keys($1::text[], $2::text[], $3::text[])

-- name: apply_backlog
SELECT {schema}.apply_backlog($1::bigint, $2::text)
