-- Policies: one row for each subject in `policy`; `effective_rule` and `hold` follow from it in the same transaction, and a
-- row in `policy_change` lets every queue unpark what the subject may have held back. Index: primary keys, tenant_queue_name,
-- tenant_queue_parked, strand_task, strand_gate, strand_budget, job_tenant, history_tenant, dead_tenant. Locks: `lock` lets one change
-- commit after the other, so that changes are numbered in the order in which others see them.

-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended($1, 0))

-- name: now
SELECT {schema}.now_or($1)

-- name: read
SELECT p.kind, p.name, p.declared, p.override, p.paused, p.closed
FROM unnest($1::text[], $2::text[]) AS asked (kind, name)
CROSS JOIN LATERAL (
  SELECT * FROM {schema}.policy WHERE policy.kind = asked.kind AND policy.name = asked.name) p

-- name: tenants_above_everyone
-- Tenants that are not declared and have an override above what holds for everyone.
SELECT name, declared, override, paused, closed FROM {schema}.policy
WHERE kind = 'tenant' AND name <> '*' AND declared IS NULL AND override IS NOT NULL

-- name: write
INSERT INTO {schema}.policy (kind, name, declared, override, paused, closed)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[])
ON CONFLICT (kind, name) DO UPDATE SET
  declared = excluded.declared, override = excluded.override, paused = excluded.paused, closed = excluded.closed

-- name: delete_rules
DELETE FROM {schema}.effective_rule USING unnest($1::text[], $2::text[]) AS stale (kind, name)
WHERE effective_rule.kind = stale.kind AND effective_rule.name = stale.name

-- name: insert_rules
INSERT INTO {schema}.effective_rule SELECT * FROM jsonb_populate_recordset(NULL::{schema}.effective_rule, $1::jsonb)

-- name: delete_holds
DELETE FROM {schema}.hold USING unnest($1::text[], $2::text[]) AS stale (kind, name)
WHERE hold.kind = stale.kind AND hold.name = stale.name

-- name: insert_holds
INSERT INTO {schema}.hold (verb, kind, name, until, reason)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])

-- name: record_change
INSERT INTO {schema}.policy_change (at, kind, name) SELECT $1, * FROM unnest($2::text[], $3::text[])

-- name: concerned
-- The queues in which these subjects may hold somebody back; only for hints, so it need not be exact.
SELECT name AS queue FROM unnest($1::text[], $2::text[]) AS changed (kind, name) WHERE kind = 'queue'
UNION SELECT tenant_queue.queue FROM {schema}.tenant_queue JOIN unnest($1::text[], $2::text[]) AS changed (kind, name)
  ON changed.kind = 'tenant' AND tenant_queue.tenant = changed.name WHERE tenant_queue.state = {parked}
UNION SELECT queue.name FROM {schema}.queue
  WHERE EXISTS (SELECT 1 FROM unnest($1::text[], $2::text[]) AS changed (kind, name) WHERE kind = 'tenant' AND name = '*')
UNION SELECT strand.queue FROM {schema}.strand JOIN unnest($1::text[], $2::text[]) AS changed (kind, name)
  ON changed.kind = 'task' AND strand.task = changed.name WHERE strand.state = {parked}
UNION SELECT strand.queue FROM {schema}.strand JOIN unnest($1::text[], $2::text[]) AS changed (kind, name)
  ON changed.kind = 'gate' AND (strand.gate = changed.name OR strand.subject = 'gate ' || changed.name)
  WHERE strand.state = {parked}

UNION SELECT strand.queue FROM {schema}.strand JOIN unnest($1::text[], $2::text[]) AS changed (kind, name)
  ON changed.kind = 'budget' AND strand.subject = 'budget ' || changed.name WHERE strand.parked = 'budget'

-- name: drop_periods
DELETE FROM {schema}.budget_period WHERE budget = $1

-- name: add_periods
INSERT INTO {schema}.budget_period (budget, starts_at) SELECT $1, * FROM unnest($2::bigint[])

-- name: unfinished
-- $1 the queue, $2 the most to count.
SELECT count(*) FROM (
  (SELECT 1 FROM {schema}.job WHERE state = {ready} AND queue = $1 LIMIT $2)
  UNION ALL (SELECT 1 FROM {schema}.job WHERE state = {delayed} AND queue = $1 LIMIT $2)
  UNION ALL (SELECT 1 FROM {schema}.job WHERE state = {running} AND queue = $1 LIMIT $2) LIMIT $2) found

-- name: rates
-- $1 the queue of tenants, $2 and $3 kinds and names. Rows are rewritten at every start: the newest counts.
SELECT asked.kind, asked.name, used.rate_id, used.next_allowed_at
FROM unnest($2::text[], $3::text[]) AS asked (kind, name)
CROSS JOIN LATERAL (
  (SELECT rate_id, next_allowed_at FROM {schema}.rate_state r WHERE r.kind = asked.kind AND r.name = asked.name
   ORDER BY ver DESC LIMIT 1)
  UNION ALL
  (SELECT rate_id, next_allowed_at FROM {schema}.tenant_queue t
   WHERE asked.kind = 'tenant' AND t.tenant = asked.name AND t.queue = $1 ORDER BY ver DESC LIMIT 1)) used

-- name: named
SELECT name FROM {schema}.policy
WHERE kind = $1 AND name > $2 AND name <> '*'
  AND (declared IS NOT NULL OR override IS NOT NULL OR paused IS NOT NULL OR closed IS NOT NULL)
ORDER BY name LIMIT $3

-- name: tenants
-- Hops from name to name by the indexes: a tenant's million jobs are not read.
WITH RECURSIVE found (name, number) AS (
  SELECT least((SELECT tenant FROM {schema}.job WHERE tenant > $1 AND worker IS NULL ORDER BY tenant LIMIT 1),
               (SELECT tenant FROM {schema}.history WHERE tenant > $1 ORDER BY tenant LIMIT 1),
               (SELECT tenant FROM {schema}.dead WHERE tenant > $1 ORDER BY tenant LIMIT 1)), 1
  UNION ALL
  SELECT least((SELECT tenant FROM {schema}.job WHERE tenant > found.name AND worker IS NULL ORDER BY tenant LIMIT 1),
               (SELECT tenant FROM {schema}.history WHERE tenant > found.name ORDER BY tenant LIMIT 1),
               (SELECT tenant FROM {schema}.dead WHERE tenant > found.name ORDER BY tenant LIMIT 1)), number + 1
  FROM found WHERE name IS NOT NULL AND number < $2)
SELECT name FROM found WHERE name IS NOT NULL
UNION SELECT tenant FROM {schema}.job WHERE state = {running} AND tenant > $1
ORDER BY name LIMIT $2

-- name: queues
WITH RECURSIVE hot (name) AS (
  SELECT least((SELECT queue FROM {schema}.job WHERE state = {ready} AND queue > $1 ORDER BY queue LIMIT 1),
               (SELECT queue FROM {schema}.job WHERE state = {delayed} AND queue > $1 ORDER BY queue LIMIT 1),
               (SELECT queue FROM {schema}.job WHERE state = {running} AND queue > $1 ORDER BY queue LIMIT 1))
  UNION ALL
  SELECT least((SELECT queue FROM {schema}.job WHERE state = {ready} AND queue > hot.name ORDER BY queue LIMIT 1),
               (SELECT queue FROM {schema}.job WHERE state = {delayed} AND queue > hot.name ORDER BY queue LIMIT 1),
               (SELECT queue FROM {schema}.job WHERE state = {running} AND queue > hot.name ORDER BY queue LIMIT 1))
  FROM hot WHERE name IS NOT NULL)
SELECT name FROM hot WHERE name IS NOT NULL
UNION
SELECT queue FROM (SELECT queue, jobs FROM {schema}.tally UNION ALL SELECT queue, jobs FROM {schema}.tally_delta) finished
WHERE queue > $1 GROUP BY queue HAVING sum(jobs) > 0
ORDER BY 1 LIMIT $2
