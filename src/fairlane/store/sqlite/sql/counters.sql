-- Purpose: counters by name: virtual time of queues, used slots of gates, state of rates, estimates of tasks.
-- Parameters: ?1 name, ?2 value, ?3 and ?4 the state of the rate; of estimates, ?1 queue, ?2 task, ?3 value.
-- Index: the primary keys. Locks: the write lock.

-- name: read_queue
SELECT floor, next_allowed_at, rate_id FROM queue WHERE name = ?1

-- name: write_queue
INSERT INTO queue (name, floor, next_allowed_at, rate_id) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET floor = excluded.floor, next_allowed_at = excluded.next_allowed_at, rate_id = excluded.rate_id

-- name: read_task
SELECT 0, next_allowed_at, rate_id FROM task WHERE name = ?1

-- name: write_task
-- A task has no value, so ?2 is not used.
INSERT INTO task (name, next_allowed_at, rate_id) VALUES (?1, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET next_allowed_at = excluded.next_allowed_at, rate_id = excluded.rate_id

-- name: read_estimate
SELECT estimate FROM estimate WHERE queue = ?1 AND task = ?2

-- name: write_estimate
INSERT INTO estimate (queue, task, estimate) VALUES (?1, ?2, ?3)
ON CONFLICT (queue, task) DO UPDATE SET estimate = excluded.estimate

-- name: read_gate
SELECT used, next_allowed_at, rate_id FROM gate WHERE name = ?1

-- name: write_gate
INSERT INTO gate (name, used, next_allowed_at, rate_id) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET used = excluded.used, next_allowed_at = excluded.next_allowed_at, rate_id = excluded.rate_id
