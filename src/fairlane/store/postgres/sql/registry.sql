-- Workers, published tasks, leads, and the common pulse. Rows are found by their primary keys.

-- name: register
SELECT {s}.register($1, $2, $3, $4, $5, $6)

-- name: heartbeat
SELECT {s}.heartbeat($1, $2, $3, $4, $5, $6, $7)

-- name: leave
WITH gone AS (DELETE FROM {s}.worker WHERE id = $1)
DELETE FROM {s}.lead WHERE worker = $1

-- name: workers
SELECT card, state, started_at, beat_at, running, settled, failed FROM {s}.worker
WHERE $2::bigint IS NULL OR beat_at >= {s}.now_or($1) - $2 ORDER BY id

-- name: tasks
SELECT card, seen_at FROM {s}.published ORDER BY name

-- name: clean
DELETE FROM {s}.worker WHERE beat_at <= {s}.now_or($1) - $2::bigint RETURNING id

-- name: lead
SELECT leader, lasts_until FROM {s}.lead($1, $2, $3, $4)

-- name: pulse
SELECT {s}.now_or($1), (SELECT value::bigint FROM {s}.meta WHERE name = 'beat_at'),
       (SELECT value::bigint FROM {s}.meta WHERE name = 'resumed_at')
