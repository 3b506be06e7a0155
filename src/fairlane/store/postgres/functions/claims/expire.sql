-- Expire (S21): find waiting jobs whose expiry has passed; cancel one that a claim meets.
-- Parameters: `p_scan_from` as in reclaim.sql. Index: job_expiry. Locks: `expired_jobs` none; `expire_job` needs the
-- queue lock.

-- The time, waiting jobs whose expiry has passed, earliest first, with their queues, and how long the scan took by
-- the server's own clock.
CREATE OR REPLACE FUNCTION {schema}.expired_jobs(p_now bigint, p_scan_from bigint, p_limit int, OUT at bigint, OUT ids uuid[],
  OUT queues text[], OUT took bigint)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
  v_began bigint := {schema}.now_or(NULL);
BEGIN
  at := {schema}.now_or(p_now);
  SELECT array_agg(id), array_agg(queue) INTO ids, queues FROM (
    SELECT id, queue FROM {schema}.job
    WHERE expires_at <= at AND expires_at >= least(p_scan_from, at - 5000000) AND worker IS NULL
    ORDER BY expires_at, id LIMIT p_limit) AS found;
  took := {schema}.now_or(NULL) - v_began;
END $$;

-- Cancel a job that a claim found expired: into history, and its keys are released.
CREATE OR REPLACE FUNCTION {schema}.expire_job(p_now bigint, p_job tid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE gone {schema}.job;
BEGIN
  DELETE FROM {schema}.job WHERE ctid = p_job RETURNING * INTO gone;
  gone.state := {cancelled};
  gone.because := 'expired';
  INSERT INTO {schema}.history ({sent}, {status}, settled_at)
  SELECT {sent}, {status}, p_now FROM (SELECT (gone).*) AS job;
  INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs) VALUES (gone.tenant, gone.queue, gone.state, 1);
  IF gone.idempotency_key IS NOT NULL THEN
    UPDATE {schema}.idempotency SET state = gone.state, settled_at = p_now
    WHERE tenant = gone.tenant AND key = gone.idempotency_key AND id = gone.id;
  END IF;
  IF gone.dedup_key IS NOT NULL THEN
    DELETE FROM {schema}.dedup WHERE tenant = gone.tenant AND task = gone.task AND key = gone.dedup_key AND id = gone.id;
  END IF;
END $$;
