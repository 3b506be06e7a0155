-- Small facts by name: floors, estimates, uses, arrivals. Index: primary keys. Locks: the writer's.

-- name: read_queue
SELECT floor, arrival, pace FROM queue WHERE name = ?1

-- name: write_queue
INSERT INTO queue (name, floor, arrival, pace) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET floor = excluded.floor, arrival = excluded.arrival, pace = excluded.pace

-- name: read_task
SELECT 0, arrival, pace FROM task WHERE name = ?1

-- name: write_task
-- ?2 is a measure, which other shelves have.
INSERT INTO task (name, arrival, pace) VALUES (?1, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET arrival = excluded.arrival, pace = excluded.pace

-- name: read_estimate
SELECT estimate FROM estimate WHERE queue = ?1 AND task = ?2

-- name: write_estimate
INSERT INTO estimate (queue, task, estimate) VALUES (?1, ?2, ?3)
ON CONFLICT (queue, task) DO UPDATE SET estimate = excluded.estimate

-- name: read_gate
SELECT used, arrival, pace FROM gate WHERE name = ?1

-- name: write_gate
INSERT INTO gate (name, used, arrival, pace) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET used = excluded.used, arrival = excluded.arrival, pace = excluded.pace
