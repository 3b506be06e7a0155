-- Removed jobs in batches until they are archived (S105), and jobs that come back (S116). Index: primary keys,
-- archive_job_tenant, job_id, history_id, dead_id. Locks: a batch, while jobs come to it or it is closed; `one_restorer` lets
-- one restore at a time.

-- name: now
SELECT {schema}.now_or($1)

-- name: open_batch
-- Locks: the batch, so that nobody closes it meanwhile.
SELECT number FROM {schema}.archive_batch WHERE closed_at IS NULL ORDER BY number LIMIT 1 FOR UPDATE

-- name: begin_batch
INSERT INTO {schema}.archive_batch (closed_at) VALUES (NULL) RETURNING number

-- name: insert_jobs
-- A job that came back and is removed again may be in it already.
INSERT INTO {schema}.archive_job (batch, id, tenant, record)
SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::bytea[])
ON CONFLICT (batch, id) DO UPDATE SET record = excluded.record

-- name: close_oldest
-- $1 the clock of a test. Locks: the batch, and so waits for whoever adds to it.
UPDATE {schema}.archive_batch SET closed_at = {schema}.now_or($1)
WHERE closed_at IS NULL AND number = (SELECT min(number) FROM {schema}.archive_batch)

-- name: oldest_batch
SELECT number, closed_at FROM {schema}.archive_batch WHERE closed_at IS NOT NULL ORDER BY number LIMIT 1

-- name: page
-- $1 the batch, $2 the job to go on after, $3 how many.
SELECT record FROM {schema}.archive_job WHERE batch = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3

-- name: remove_batch
WITH done AS (DELETE FROM {schema}.archive_batch WHERE number = $1 AND closed_at IS NOT NULL RETURNING number),
jobs AS (DELETE FROM {schema}.archive_job USING done WHERE archive_job.batch = done.number)
SELECT number FROM done

-- name: waiting
SELECT count(*) FROM {schema}.archive_job WHERE $1::text IS NULL OR tenant = $1

-- name: forget
DELETE FROM {schema}.archive_job WHERE tenant = $1

-- name: one_restorer
SELECT pg_advisory_xact_lock(hashtextextended($1, 0))

-- name: known
SELECT id FROM {schema}.job WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id FROM {schema}.history WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id FROM {schema}.dead WHERE id = ANY ($1::uuid[])

-- name: insert_history
INSERT INTO {schema}.history ({finished}) VALUES ({finished_places})

-- name: insert_dead
INSERT INTO {schema}.dead (error_class, fingerprint, {finished}) VALUES ({letter_places})

-- name: count
INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
