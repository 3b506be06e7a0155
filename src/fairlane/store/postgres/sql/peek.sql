-- Read jobs that a peek found, as they are. Index: job_id.

-- name: mutex
SELECT {s}.mutex($1)

-- name: jobs
SELECT {hot} FROM unnest($1::uuid[]) WITH ORDINALITY AS found (wanted, place)
JOIN {s}.job ON job.id = found.wanted ORDER BY found.place
