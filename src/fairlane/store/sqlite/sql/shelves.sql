-- Small facts by name: floors, estimates, uses, arrivals. Index: primary keys. Locks: the writer's.

-- name: read_queue
SELECT floor, arrival FROM queue WHERE name = ?1

-- name: write_queue
INSERT INTO queue (name, floor, arrival) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET floor = excluded.floor, arrival = excluded.arrival

-- name: read_task
SELECT estimate, arrival FROM task WHERE name = ?1

-- name: write_task
INSERT INTO task (name, estimate, arrival) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET estimate = excluded.estimate, arrival = excluded.arrival

-- name: read_gate
SELECT used, arrival FROM gate WHERE name = ?1

-- name: write_gate
INSERT INTO gate (name, used, arrival) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET used = excluded.used, arrival = excluded.arrival
