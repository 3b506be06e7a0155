-- Change waiting jobs, under the mutex of their queue; ask running ones to stop.
-- Index: job_id. Locks: the mutex, or the rows of running jobs.

-- Begin: take the mutex and know what happened. Each statement here has a snapshot of its own, newer than the mutex.
CREATE OR REPLACE FUNCTION {s}.enter(p_now bigint, p_queue text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint;
BEGIN
  PERFORM {s}.mutex(p_queue);
  v_now := {s}.now_or(p_now);
  PERFORM {s}.fold(v_now, p_queue);
  RETURN v_now;
END $$;

-- In which queue and state jobs are, in one look at all homes, so that one that moves meanwhile is met once.
CREATE OR REPLACE FUNCTION {s}.whereabouts(p_id uuid[], p_tenant text) RETURNS TABLE (id uuid, queue text, state text)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN QUERY SELECT w.* FROM unnest(p_id) u (id) CROSS JOIN LATERAL (
    (SELECT j.id, j.queue, j.state FROM {s}.job j WHERE j.id BETWEEN u.id AND u.id
       AND (p_tenant IS NULL OR j.tenant = p_tenant) ORDER BY j.id LIMIT 1)
    UNION ALL
    (SELECT h.id, h.queue, h.state FROM {s}.history h WHERE h.id BETWEEN u.id AND u.id
       AND (p_tenant IS NULL OR h.tenant = p_tenant) ORDER BY h.id LIMIT 1)
    UNION ALL
    (SELECT d.id, d.queue, d.state FROM {s}.dead d WHERE d.id BETWEEN u.id AND u.id
       AND (p_tenant IS NULL OR d.tenant = p_tenant) ORDER BY d.id LIMIT 1)) w;
END $$;

-- Those of these jobs that wait.
CREATE OR REPLACE FUNCTION {s}.waiting_jobs(p_id uuid[]) RETURNS SETOF {s}.job
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN QUERY SELECT w.* FROM unnest(p_id) u (id) CROSS JOIN LATERAL (
    SELECT j.* FROM {s}.job j WHERE j.id BETWEEN u.id AND u.id AND j.worker IS NULL ORDER BY j.id LIMIT 1) w;
END $$;

-- Delayed jobs that are to run now.
CREATE OR REPLACE FUNCTION {s}.hurry(p_now bigint, p_tid tid[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  WITH due AS (
    UPDATE {s}.job j SET state = {ready}, because = NULL, run_at = p_now, sort_key = p_now - j.priority * {priority_step}
    FROM unnest(p_tid) WITH ORDINALITY u (tid, n) WHERE j.ctid = u.tid
    RETURNING u.n, j.queue, j.tenant, j.task, j.sort_key, j.id)
  INSERT INTO {s}.delta (ord, queue, tenant, task, delayed, ready, head_key, head_id)
  SELECT n, queue, tenant, task, -1, 1, sort_key, id FROM due;
END $$;

-- New values of one waiting job. A ready one that stays ready has another place: its strand looks again.
CREATE OR REPLACE FUNCTION {s}.edit(p_id uuid, p_state text, p_because text, p_run_at bigint, p_sort_key bigint,
  p_priority int, p_expires_at bigint, p_tags text[], p_payload bytea, p_checksum bigint, p_version int)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_was record;
BEGIN
  SELECT queue, tenant, task, state, sort_key INTO v_was FROM {s}.job WHERE id = p_id;
  UPDATE {s}.job SET state = p_state, because = p_because, run_at = p_run_at, sort_key = p_sort_key,
                     priority = p_priority, expires_at = p_expires_at, tags = p_tags, payload = p_payload,
                     checksum = p_checksum, version = p_version
  WHERE id = p_id;
  IF p_state = {ready} AND (v_was.state <> {ready} OR v_was.sort_key <> p_sort_key) THEN
    INSERT INTO {s}.delta (ord, queue, tenant, task, delayed, ready, head_key, head_id)
    VALUES (1, v_was.queue, v_was.tenant, v_was.task, -(v_was.state = {delayed})::int, (v_was.state = {delayed})::int,
            p_sort_key, p_id);
  ELSIF p_state = {delayed} THEN
    INSERT INTO {s}.delta (ord, queue, tenant, task, delayed_at)
    VALUES (1, v_was.queue, v_was.tenant, v_was.task, p_run_at);
  END IF;
END $$;

-- Set the flag of running jobs, with the reason of who asks first; give whose they are. Skips rows that are locked.
CREATE OR REPLACE FUNCTION {s}.ask_to_stop(p_id uuid[], p_because text, OUT asked uuid[], OUT workers text[])
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_tid tid[];
BEGIN
  SELECT array_agg(h.tid) FILTER (WHERE NOT h.is_cancel_asked), array_agg(u.id), array_agg(DISTINCT h.worker)
  INTO v_tid, asked, workers
  FROM (SELECT i.id FROM unnest(p_id) i (id) ORDER BY i.id) u CROSS JOIN LATERAL (
    SELECT j.ctid AS tid, j.worker, j.is_cancel_asked FROM {s}.job j
    WHERE j.id BETWEEN u.id AND u.id AND j.worker IS NOT NULL ORDER BY j.id LIMIT 1 FOR UPDATE SKIP LOCKED) h;
  PERFORM {s}.flag(v_tid, p_because);
END $$;

CREATE OR REPLACE FUNCTION {s}.flag(p_tid tid[], p_because text) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
BEGIN
  UPDATE {s}.job SET is_cancel_asked = true, because = p_because WHERE ctid = ANY (p_tid);
END $$;

-- Wait until nobody holds the row of one job, at most a second.
CREATE OR REPLACE FUNCTION {s}.wait_for(p_id uuid) RETURNS void LANGUAGE plpgsql SET lock_timeout = '1s' SET enable_seqscan = off AS $$
BEGIN
  PERFORM FROM {s}.job WHERE id = p_id FOR UPDATE;
END $$;
