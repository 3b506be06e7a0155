-- The registry: workers, published tasks, leads, the common status. Index: primary keys. See functions/upkeep/registry.sql.

-- name: register
SELECT {schema}.register($1, $2, $3, $4, $5, $6)

-- name: heartbeat
SELECT {schema}.heartbeat($1, $2, $3, $4, $5, $6, $7)

-- name: leave
WITH gone AS (DELETE FROM {schema}.worker WHERE id = $1)
DELETE FROM {schema}.lead WHERE worker = $1

-- name: workers
SELECT record, state, started_at, beat_at, running, settled, failed FROM {schema}.worker
WHERE $2::bigint IS NULL OR beat_at >= {schema}.now_or($1) - $2 ORDER BY id

-- name: tasks
SELECT record, seen_at FROM {schema}.published_task ORDER BY name

-- name: clean
DELETE FROM {schema}.worker WHERE beat_at <= {schema}.now_or($1) - $2::bigint RETURNING id

-- name: lead
SELECT leader, lasts_until FROM {schema}.lead($1, $2, $3, $4)

-- name: status
SELECT {schema}.now_or($1), (SELECT value::bigint FROM {schema}.meta WHERE name = 'beat_at'),
       (SELECT value::bigint FROM {schema}.meta WHERE name = 'resumed_at')
