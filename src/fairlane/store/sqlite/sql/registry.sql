-- Purpose: workers and their heartbeats, the tasks that they publish, leads.
-- Parameters: the columns of the row. Index: the primary keys. Locks: the write lock for writes.

-- name: register
INSERT INTO worker (id, record, state, started_at, beat_at) VALUES (?1, ?2, 'starting', ?3, ?3)
ON CONFLICT (id) DO UPDATE SET record = excluded.record, state = excluded.state, started_at = excluded.started_at,
  beat_at = excluded.beat_at, running = 0, settled = 0, failed = 0, memory = NULL, cpu = NULL

-- name: publish
INSERT INTO published (name, record, seen_at) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET record = excluded.record, seen_at = excluded.seen_at

-- name: heartbeat
UPDATE worker SET state = ?1, beat_at = ?2, running = ?3, settled = ?4, failed = ?5, memory = ?7, cpu = ?8 WHERE id = ?6
RETURNING record

-- name: leave
DELETE FROM worker WHERE id = ?1

-- name: end_leads
DELETE FROM lead WHERE worker = ?1

-- name: workers
SELECT record, state, started_at, beat_at, running, settled, failed, memory, cpu FROM worker WHERE beat_at >= ?1
ORDER BY id

-- name: tasks
SELECT record, seen_at FROM published ORDER BY name

-- name: clean
DELETE FROM worker WHERE beat_at <= ?1 RETURNING id

-- name: lead
INSERT INTO lead (name, worker, until) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET worker = excluded.worker, until = excluded.until
WHERE lead.worker = excluded.worker OR lead.until <= ?4

-- name: leader
SELECT worker, until FROM lead WHERE name = ?1

-- name: remember
INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: recall
SELECT value FROM meta WHERE name = ?1
