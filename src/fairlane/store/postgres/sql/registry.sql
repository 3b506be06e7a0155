-- Workers, published tasks, leads, and the common pulse. Rows are found by their primary keys.
-- Locks, in this order: the worker's own row, published tasks by name, the pulse.

-- name: hurry
SELECT set_config('synchronous_commit', 'off', true)

-- name: register
INSERT INTO {s}.worker (id, card, state, started_at, beat_at)
SELECT $2, $3, 'starting', now, now FROM {s}.now_or($1) AS now
ON CONFLICT (id) DO UPDATE SET card = excluded.card, state = excluded.state, started_at = excluded.started_at,
  beat_at = excluded.beat_at, running = 0, settled = 0, failed = 0
RETURNING beat_at

-- name: heartbeat
UPDATE {s}.worker SET state = $3, beat_at = {s}.now_or($1), running = $4, settled = $5, failed = $6 WHERE id = $2
RETURNING card, beat_at

-- name: publish
INSERT INTO {s}.published (name, card, seen_at) SELECT name, card, $1 FROM unnest($2::text[], $3::bytea[]) AS task (name, card)
ON CONFLICT (name) DO UPDATE SET card = excluded.card, seen_at = excluded.seen_at

-- name: last_beat
SELECT value::bigint FROM {s}.meta WHERE name = 'beat_at' FOR UPDATE

-- name: remember
INSERT INTO {s}.meta (name, value) VALUES ($1, $2::bigint::text)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

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
INSERT INTO {s}.lead AS held (name, worker, until) VALUES ($2, $3, {s}.now_or($1) + $4::bigint)
ON CONFLICT (name) DO UPDATE SET worker = excluded.worker, until = excluded.until
WHERE held.worker = excluded.worker OR held.until <= {s}.now_or($1)

-- name: leader
SELECT worker, until FROM {s}.lead WHERE name = $1

-- name: pulse
SELECT {s}.now_or($1), (SELECT value::bigint FROM {s}.meta WHERE name = 'beat_at'),
       (SELECT value::bigint FROM {s}.meta WHERE name = 'resumed_at')
