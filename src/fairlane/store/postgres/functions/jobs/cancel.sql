-- Cancel (S30): find where jobs are, end those that wait under the lock of their queue, ask running ones to stop.
-- Also used by move-to-dead, purge, expire and forget.
-- Index: job_id, history_id, dead_id. Locks: the queue lock, or the rows of running jobs (SKIP LOCKED).

-- Begin a change of waiting jobs: take the queue lock and apply all deltas. Each statement here has a snapshot of its
-- own, newer than the lock. Return the time.
CREATE OR REPLACE FUNCTION {schema}.lock_and_apply(p_now bigint, p_queue text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint;
BEGIN
  PERFORM {schema}.lock_queue(p_queue);
  v_now := {schema}.now_or(p_now);
  PERFORM {schema}.apply_all_deltas(v_now, p_queue);
  RETURN v_now;
END $$;

-- In which queue and state jobs are. One look at all homes, so that a job that moves meanwhile is met once.
CREATE OR REPLACE FUNCTION {schema}.states_of(p_id uuid[], p_tenant text) RETURNS TABLE (id uuid, queue text, state text)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN QUERY SELECT w.* FROM unnest(p_id) u (id) CROSS JOIN LATERAL (
    (SELECT j.id, j.queue, j.state FROM {schema}.job j WHERE j.id BETWEEN u.id AND u.id
       AND (p_tenant IS NULL OR j.tenant = p_tenant) ORDER BY j.id LIMIT 1)
    UNION ALL
    (SELECT h.id, h.queue, h.state FROM {schema}.history h WHERE h.id BETWEEN u.id AND u.id
       AND (p_tenant IS NULL OR h.tenant = p_tenant) ORDER BY h.id LIMIT 1)
    UNION ALL
    (SELECT d.id, d.queue, d.state FROM {schema}.dead d WHERE d.id BETWEEN u.id AND u.id
       AND (p_tenant IS NULL OR d.tenant = p_tenant) ORDER BY d.id LIMIT 1)) w;
END $$;

-- Those of these jobs that wait.
CREATE OR REPLACE FUNCTION {schema}.waiting_jobs(p_id uuid[]) RETURNS SETOF {schema}.job
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN QUERY SELECT w.* FROM unnest(p_id) u (id) CROSS JOIN LATERAL (
    SELECT j.* FROM {schema}.job j WHERE j.id BETWEEN u.id AND u.id AND j.worker IS NULL ORDER BY j.id LIMIT 1) w;
END $$;

-- Set the cancel flag of running jobs; the reason of whoever asks first stays. Return the jobs and their workers.
-- Skips rows that are locked.
CREATE OR REPLACE FUNCTION {schema}.ask_to_stop(p_id uuid[], p_because text, OUT asked uuid[], OUT workers text[])
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_tid tid[];
BEGIN
  SELECT array_agg(h.tid) FILTER (WHERE NOT h.is_cancel_asked), array_agg(u.id), array_agg(DISTINCT h.worker)
  INTO v_tid, asked, workers
  FROM (SELECT i.id FROM unnest(p_id) i (id) ORDER BY i.id) u CROSS JOIN LATERAL (
    SELECT j.ctid AS tid, j.worker, j.is_cancel_asked FROM {schema}.job j
    WHERE j.id BETWEEN u.id AND u.id AND j.worker IS NOT NULL ORDER BY j.id LIMIT 1 FOR UPDATE SKIP LOCKED) h;
  PERFORM {schema}.flag_cancel(v_tid, p_because);
END $$;

CREATE OR REPLACE FUNCTION {schema}.flag_cancel(p_tid tid[], p_because text) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
BEGIN
  UPDATE {schema}.job SET is_cancel_asked = true, because = p_because WHERE ctid = ANY (p_tid);
END $$;

-- Wait until nobody holds the row of one job, at most a second.
CREATE OR REPLACE FUNCTION {schema}.wait_for_row(p_id uuid) RETURNS void LANGUAGE plpgsql SET lock_timeout = '1s'
  SET enable_seqscan = off AS $$
BEGIN
  PERFORM FROM {schema}.job WHERE id = p_id FOR UPDATE;
END $$;
