-- Small facts by name: floors, estimates, uses, arrivals. Index: primary keys. Locks: the writer's.

-- name: read_queue
SELECT floor, arrival, pace FROM queue WHERE name = ?1

-- name: write_queue
INSERT INTO queue (name, floor, arrival, pace) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET floor = excluded.floor, arrival = excluded.arrival, pace = excluded.pace

-- name: read_task
SELECT estimate, arrival, pace FROM task WHERE name = ?1

-- name: write_task
INSERT INTO task (name, estimate, arrival, pace) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET estimate = excluded.estimate, arrival = excluded.arrival, pace = excluded.pace

-- name: read_gate
SELECT used, arrival, pace FROM gate WHERE name = ?1

-- name: write_gate
INSERT INTO gate (name, used, arrival, pace) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET used = excluded.used, arrival = excluded.arrival, pace = excluded.pace
