-- Read jobs that a peek found, as they are, in no order. Index: job_id, whatever was planned while there were none.

-- name: mutex
SELECT {s}.mutex($1)

-- name: jobs
SELECT {hot} FROM {s}.waiting_jobs($1::uuid[])
