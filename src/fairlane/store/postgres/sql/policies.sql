-- What is allowed: one row per subject in `policy`; `term` and `hold` follow from it in the same transaction, and a
-- row in `mark` lets every queue wake what the subject may have held. Index: primary keys, turn_name, turn_parked,
-- strand_task, strand_gate, job_tenant, history_tenant, dead_tenant. Locks: `lock` lets one change be committed after
-- the other, so that marks are numbered in the order in which others see them.

-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended($1, 0))

-- name: now
SELECT {s}.now_or($1)

-- name: read
SELECT p.kind, p.name, p.declared, p.override, p.paused, p.closed
FROM unnest($1::text[], $2::text[]) AS asked (kind, name)
CROSS JOIN LATERAL (
  SELECT * FROM {s}.policy WHERE policy.kind = asked.kind AND policy.name = asked.name) p

-- name: leaning
-- Tenants with an override above what holds for everyone.
SELECT name, declared, override, paused, closed FROM {s}.policy
WHERE kind = 'tenant' AND name <> '*' AND declared IS NULL AND override IS NOT NULL

-- name: write
INSERT INTO {s}.policy (kind, name, declared, override, paused, closed)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[])
ON CONFLICT (kind, name) DO UPDATE SET
  declared = excluded.declared, override = excluded.override, paused = excluded.paused, closed = excluded.closed

-- name: terms_out
DELETE FROM {s}.term USING unnest($1::text[], $2::text[]) AS stale (kind, name)
WHERE term.kind = stale.kind AND term.name = stale.name

-- name: terms_in
INSERT INTO {s}.term SELECT * FROM jsonb_populate_recordset(NULL::{s}.term, $1::jsonb)

-- name: holds_out
DELETE FROM {s}.hold USING unnest($1::text[], $2::text[]) AS stale (kind, name)
WHERE hold.kind = stale.kind AND hold.name = stale.name

-- name: holds_in
INSERT INTO {s}.hold (verb, kind, name, until, reason)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])

-- name: mark
INSERT INTO {s}.mark (at, kind, name) SELECT $1, * FROM unnest($2::text[], $3::text[])

-- name: concerned
-- The queues in which somebody may be held by these subjects; only a hint, so that it need not be exact.
SELECT name AS queue FROM unnest($1::text[], $2::text[]) AS changed (kind, name) WHERE kind = 'queue'
UNION SELECT turn.queue FROM {s}.turn JOIN unnest($1::text[], $2::text[]) AS changed (kind, name)
  ON changed.kind = 'tenant' AND turn.tenant = changed.name WHERE turn.state = 2
UNION SELECT queue.name FROM {s}.queue
  WHERE EXISTS (SELECT 1 FROM unnest($1::text[], $2::text[]) AS changed (kind, name) WHERE kind = 'tenant' AND name = '*')
UNION SELECT strand.queue FROM {s}.strand JOIN unnest($1::text[], $2::text[]) AS changed (kind, name)
  ON changed.kind = 'task' AND strand.task = changed.name WHERE strand.state = 2
UNION SELECT strand.queue FROM {s}.strand JOIN unnest($1::text[], $2::text[]) AS changed (kind, name)
  ON changed.kind = 'gate' AND (strand.gate = changed.name OR strand.subject = 'gate ' || changed.name)
  WHERE strand.state = 2

-- name: named
SELECT name FROM {s}.policy
WHERE kind = $1 AND name > $2 AND name <> '*'
  AND (declared IS NOT NULL OR override IS NOT NULL OR paused IS NOT NULL OR closed IS NOT NULL)
ORDER BY name LIMIT $3

-- name: tenants
-- From one name to the next by the indexes: a tenant's million jobs are not read.
WITH RECURSIVE found (name, number) AS (
  SELECT least((SELECT tenant FROM {s}.job WHERE tenant > $1 AND worker IS NULL ORDER BY tenant LIMIT 1),
               (SELECT tenant FROM {s}.history WHERE tenant > $1 ORDER BY tenant LIMIT 1),
               (SELECT tenant FROM {s}.dead WHERE tenant > $1 ORDER BY tenant LIMIT 1)), 1
  UNION ALL
  SELECT least((SELECT tenant FROM {s}.job WHERE tenant > found.name AND worker IS NULL ORDER BY tenant LIMIT 1),
               (SELECT tenant FROM {s}.history WHERE tenant > found.name ORDER BY tenant LIMIT 1),
               (SELECT tenant FROM {s}.dead WHERE tenant > found.name ORDER BY tenant LIMIT 1)), number + 1
  FROM found WHERE name IS NOT NULL AND number < $2)
SELECT name FROM found WHERE name IS NOT NULL
UNION SELECT tenant FROM {s}.job WHERE state = {running} AND tenant > $1
ORDER BY name LIMIT $2

-- name: queues
WITH RECURSIVE hot (name) AS (
  SELECT least((SELECT queue FROM {s}.job WHERE state = {ready} AND queue > $1 ORDER BY queue LIMIT 1),
               (SELECT queue FROM {s}.job WHERE state = {delayed} AND queue > $1 ORDER BY queue LIMIT 1),
               (SELECT queue FROM {s}.job WHERE state = {running} AND queue > $1 ORDER BY queue LIMIT 1))
  UNION ALL
  SELECT least((SELECT queue FROM {s}.job WHERE state = {ready} AND queue > hot.name ORDER BY queue LIMIT 1),
               (SELECT queue FROM {s}.job WHERE state = {delayed} AND queue > hot.name ORDER BY queue LIMIT 1),
               (SELECT queue FROM {s}.job WHERE state = {running} AND queue > hot.name ORDER BY queue LIMIT 1))
  FROM hot WHERE name IS NOT NULL)
SELECT name FROM hot WHERE name IS NOT NULL
UNION
SELECT queue FROM (SELECT queue, jobs FROM {s}.tally UNION ALL SELECT queue, jobs FROM {s}.tally_delta) kept
WHERE queue > $1 GROUP BY queue HAVING sum(jobs) > 0
ORDER BY 1 LIMIT $2

-- name: tasks
-- Of ready jobs from one strand to the next by the index. Finished ones are all read: no index has their tasks, as every
-- settlement would write an entry.
WITH RECURSIVE strands (queue, tenant, task) AS (
  (SELECT queue, tenant, task FROM {s}.job WHERE state = {ready} ORDER BY queue, tenant, task LIMIT 1)
  UNION ALL
  SELECT next.* FROM strands CROSS JOIN LATERAL (
    SELECT queue, tenant, task FROM {s}.job
    WHERE (queue, tenant, task) > (strands.queue, strands.tenant, strands.task) AND state = {ready}
    ORDER BY queue, tenant, task LIMIT 1) next)
SELECT task FROM strands WHERE task > $1
UNION SELECT task FROM {s}.job WHERE state = {delayed} AND task > $1
UNION SELECT task FROM {s}.job WHERE state = {running} AND task > $1
UNION SELECT task FROM {s}.history WHERE task > $1
UNION SELECT task FROM {s}.dead WHERE task > $1
ORDER BY 1 LIMIT $2
