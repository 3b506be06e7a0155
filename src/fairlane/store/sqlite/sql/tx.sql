-- What every transaction may need: numbers for bodies, and the counts of finished jobs.
-- Index: primary keys. Locks: the writer's.

-- name: next_seq
SELECT coalesce(max(seq), 0) + 1 FROM body

-- name: tally
INSERT INTO tally (tenant, queue, state, jobs) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, queue, state) DO UPDATE SET jobs = jobs + excluded.jobs
