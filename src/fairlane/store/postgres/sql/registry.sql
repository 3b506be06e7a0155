-- The registry: workers, published tasks, leads, the common status. Index: primary keys. See functions/upkeep/registry.sql.

-- name: register
SELECT {schema}.register($1, $2, $3, $4, $5, $6)

-- name: heartbeat
SELECT {schema}.heartbeat($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: leave
WITH gone AS (DELETE FROM {schema}.worker WHERE id = $1)
DELETE FROM {schema}.lead WHERE worker = $1

-- name: workers
SELECT record, state, started_at, beat_at, running, settled, failed, memory, cpu FROM {schema}.worker
WHERE $2::bigint IS NULL OR beat_at >= {schema}.now_or($1) - $2 ORDER BY id

-- name: tasks
SELECT record, seen_at FROM {schema}.published_task ORDER BY name

-- name: clean
DELETE FROM {schema}.worker WHERE beat_at <= {schema}.now_or($1) - $2::bigint RETURNING id

-- name: lead
SELECT leader, lasts_until FROM {schema}.lead($1, $2, $3, $4)

-- name: lead_and_report
-- The same, and what the worker reports is stored if it leads. $5 under which name, $6 the reports.
WITH led AS (SELECT leader, lasts_until FROM {schema}.lead($1, $2, $3, $4)), kept AS (
  INSERT INTO {schema}.meta (name, value) SELECT $5, $6 FROM led WHERE leader = $3
  ON CONFLICT (name) DO UPDATE SET value = excluded.value)
SELECT leader, lasts_until FROM led

-- name: duties
-- $2 the lead, $3 under which name its reports are stored.
SELECT {schema}.now_or($1), led.worker, led.until, (SELECT value FROM {schema}.meta WHERE name = $3)
FROM (SELECT 1) AS one LEFT JOIN {schema}.lead AS led ON led.name = $2

-- name: status
SELECT {schema}.now_or($1), (SELECT value::bigint FROM {schema}.meta WHERE name = 'beat_at'),
       (SELECT value::bigint FROM {schema}.meta WHERE name = 'resumed_at')
