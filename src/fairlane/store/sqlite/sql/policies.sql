-- Purpose: read and write policies, one row per subject. meta.policies counts changes, so that processes can
-- cache.
-- Parameters: kind and name of the subject; for lists, the name after which to read and how many.
-- Index: the primary key, tenant_queue_tenant, tenant_queue_name, the primary key of tally. Locks: the write
-- lock for writes.

-- name: version
SELECT value FROM meta WHERE name = 'policies'

-- name: changed
INSERT INTO meta (name, value) VALUES ('policies', 1)
ON CONFLICT (name) DO UPDATE SET value = value + 1

-- name: read
SELECT declared, override, paused, closed FROM policy WHERE kind = ?1 AND name = ?2

-- name: read_many
-- ?2 the names, a JSON array.
SELECT name, declared, override, paused, closed FROM policy
WHERE kind = ?1 AND name IN (SELECT value FROM json_each(?2))

-- name: write
INSERT INTO policy (kind, name, declared, override, paused, closed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (kind, name) DO UPDATE SET
  declared = excluded.declared, override = excluded.override,
  paused = excluded.paused, closed = excluded.closed

-- name: named
SELECT name FROM policy
WHERE kind = ?1 AND name > ?2 AND name <> '*'
  AND (declared IS NOT NULL OR override IS NOT NULL OR paused IS NOT NULL OR closed IS NOT NULL)
ORDER BY name LIMIT ?3

-- name: tenants
SELECT tenant FROM tenant_queue WHERE tenant > ?1 AND delayed + ready + running > 0
UNION SELECT tenant FROM tally WHERE tenant > ?1 AND jobs > 0
ORDER BY 1 LIMIT ?2

-- name: queues
SELECT queue FROM tenant_queue WHERE queue > ?1 AND delayed + ready + running > 0
UNION SELECT queue FROM tally WHERE queue > ?1 AND jobs > 0
ORDER BY 1 LIMIT ?2

-- name: unfinished
SELECT sum(delayed + ready + running) FROM tenant_queue WHERE queue = ?1

-- name: queue_rate
SELECT rate_id, next_allowed_at FROM queue WHERE name = ?1

-- name: tenant_rate
-- ?1 the queue, ?2 the tenant.
SELECT rate_id, next_allowed_at FROM tenant_queue WHERE queue = ?1 AND tenant = ?2

-- name: task_rate
SELECT rate_id, next_allowed_at FROM task WHERE name = ?1

-- name: gate_rate
SELECT rate_id, next_allowed_at FROM gate WHERE name = ?1

-- name: has_any
-- Whether a kind (?1) has any policy.
SELECT EXISTS (SELECT 1 FROM policy WHERE kind = ?1)
