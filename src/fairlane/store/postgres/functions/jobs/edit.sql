-- Edit a waiting job, or make delayed ones run now (S53, S64).
-- Index: job_id. Locks: the caller's queue lock; see `lock_and_apply`.

-- Write new values of one waiting job. A ready job that stays ready has another position: its strand looks for its
-- head again.
CREATE OR REPLACE FUNCTION {schema}.edit(p_id uuid, p_state text, p_because text, p_run_at bigint, p_sort_key bigint,
  p_priority int, p_expires_at bigint, p_tags text[], p_payload bytea, p_checksum bigint, p_version int)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_was record;
BEGIN
  SELECT queue, tenant, task, state, sort_key INTO v_was FROM {schema}.job WHERE id = p_id;
  UPDATE {schema}.job SET state = p_state, because = p_because, run_at = p_run_at, sort_key = p_sort_key,
                          priority = p_priority, expires_at = p_expires_at, tags = p_tags, payload = p_payload,
                          checksum = p_checksum, version = p_version
  WHERE id = p_id;
  IF p_state = {ready} AND (v_was.state <> {ready} OR v_was.sort_key <> p_sort_key) THEN
    INSERT INTO {schema}.delta (ord, queue, tenant, task, delayed, ready, head_key, head_id)
    VALUES (1, v_was.queue, v_was.tenant, v_was.task, -(v_was.state = {delayed})::int, (v_was.state = {delayed})::int,
            p_sort_key, p_id);
  ELSIF p_state = {delayed} THEN
    INSERT INTO {schema}.delta (ord, queue, tenant, task, delayed_at)
    VALUES (1, v_was.queue, v_was.tenant, v_was.task, p_run_at);
  END IF;
END $$;

-- Make delayed jobs due now.
CREATE OR REPLACE FUNCTION {schema}.run_now(p_now bigint, p_tid tid[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  WITH due AS (
    UPDATE {schema}.job j SET state = {ready}, because = NULL, run_at = p_now, sort_key = p_now - j.priority * {priority_step}
    FROM unnest(p_tid) WITH ORDINALITY u (tid, n) WHERE j.ctid = u.tid
    RETURNING u.n, j.queue, j.tenant, j.task, j.sort_key, j.id)
  INSERT INTO {schema}.delta (ord, queue, tenant, task, delayed, ready, head_key, head_id)
  SELECT n, queue, tenant, task, -1, 1, sort_key, id FROM due;
END $$;
