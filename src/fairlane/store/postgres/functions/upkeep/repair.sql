-- Compare what is derived from the waiting jobs of one tenant in one queue with the jobs, and restore it (S90). Jobs that run
-- are counted from the jobs themselves, and due and running ones are found by indexes: none of that can be wrong.
-- Index: job_tenant, job_ready, tenant_queue_name, strand_name, delta_order. Locks: the caller's queue lock.

-- Return what does not fit. One statement reads jobs, rows and deltas that are not applied yet, at one instant.
CREATE OR REPLACE FUNCTION {schema}.compare_tenant_queue(p_queue text, p_tenant text)
RETURNS TABLE (place text, stored int, fitting int, job uuid) LANGUAGE sql STABLE AS $$
  WITH waiting AS MATERIALIZED (
    SELECT id, task, state, sort_key FROM {schema}.job
    WHERE tenant = p_tenant AND worker IS NULL AND queue = p_queue),
  deltas AS MATERIALIZED (SELECT * FROM {schema}.delta WHERE queue = p_queue AND tenant = p_tenant),
  tenant_row AS MATERIALIZED (
    SELECT * FROM {schema}.tenant_queue WHERE queue = p_queue AND tenant = p_tenant ORDER BY queue, tenant, ver DESC LIMIT 1),
  strands AS MATERIALIZED (  -- the first place that a claim looks at, for each task
    SELECT DISTINCT ON (task) task, state, head_key, head_id FROM (
      SELECT task, state, head_key, head_id, ver FROM {schema}.strand WHERE queue = p_queue AND tenant = p_tenant) s
    ORDER BY task, ver DESC),
  heads AS MATERIALIZED (
    SELECT DISTINCT ON (task) task, head_key, head_id FROM (
      SELECT task, head_key, head_id FROM strands WHERE state <> {no_ready}
      UNION ALL SELECT task, head_key, head_id FROM deltas WHERE ready > 0 AND head_key IS NOT NULL) h
    ORDER BY task, head_key, head_id),
  hidden AS MATERIALIZED (
    SELECT w.id FROM waiting w LEFT JOIN heads h USING (task)
    WHERE w.state = {ready} AND (h.head_key IS NULL OR (w.sort_key, w.id) < (h.head_key, h.head_id))),
  counted AS (
    SELECT count(*) FILTER (WHERE state = {delayed})::int AS delayed, count(*) FILTER (WHERE state = {ready})::int AS ready
    FROM waiting),
  noted AS (
    SELECT coalesce((SELECT delayed FROM tenant_row), 0) + coalesce(sum(delayed), 0)::int AS delayed,
           coalesce((SELECT ready FROM tenant_row), 0) + coalesce(sum(ready), 0)::int AS ready FROM deltas)
  SELECT 'delayed', noted.delayed, counted.delayed, NULL::uuid FROM noted, counted WHERE noted.delayed <> counted.delayed
  UNION ALL SELECT 'ready', noted.ready, counted.ready, NULL FROM noted, counted WHERE noted.ready <> counted.ready
  UNION ALL SELECT 'ready', 0, 1, id FROM hidden
  UNION ALL
  SELECT 'order', (t.state = {open})::int, (t.state <> {open})::int, NULL FROM tenant_row t
  WHERE t.parked IS NULL AND NOT EXISTS (SELECT 1 FROM deltas) AND NOT EXISTS (SELECT 1 FROM hidden)
    AND (t.state = {open}) <> EXISTS (SELECT 1 FROM strands WHERE state = {open})
$$;

-- Restore the counters, the heads of the strands and the place in the fair order; parks end, and claims make them anew.
-- Scans of the queue begin at their start again. The counters move by what is missing now: deltas that come in meanwhile
-- count on top of it.
CREATE OR REPLACE FUNCTION {schema}.restore_tenant_queue(p_queue text, p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  q {schema}.queue;
  first record;
  v_delayed int;
  v_ready int;
  v_tid tid;
  v_vt bigint;
  was_open boolean;
BEGIN
  q := {schema}.read_queue(p_queue);
  SELECT coalesce(sum(fitting - stored) FILTER (WHERE place = 'delayed'), 0),
         coalesce(sum(fitting - stored) FILTER (WHERE place = 'ready'), 0)
  INTO v_delayed, v_ready FROM {schema}.compare_tenant_queue(p_queue, p_tenant) WHERE job IS NULL;
  SELECT ctid, vt, state = {open} INTO v_tid, v_vt, was_open FROM {schema}.tenant_queue
  WHERE queue = p_queue AND tenant = p_tenant ORDER BY queue, tenant, ver DESC LIMIT 1;
  IF v_tid IS NULL THEN
    INSERT INTO {schema}.tenant_queue (queue, tenant, ver, delayed, ready) VALUES (p_queue, p_tenant, q.ver, v_delayed, v_ready);
  ELSE
    UPDATE {schema}.tenant_queue SET ver = q.ver, delayed = delayed + v_delayed, ready = ready + v_ready,
                                     head_key = -9223372036854775808
    WHERE ctid = v_tid;
  END IF;
  FOR first IN
    SELECT DISTINCT ON (task) task, sort_key, id FROM {schema}.job
    WHERE queue = p_queue AND tenant = p_tenant AND state = {ready} ORDER BY task, sort_key, id
  LOOP
    PERFORM {schema}.apply_to_strand(q, row(NULL, 0, p_queue, p_tenant, first.task, 0, 1, first.sort_key, first.id, 0, NULL,
                                            false, NULL)::{schema}.delta);
  END LOOP;
  q := {schema}.refresh_tenant_queue(q, p_tenant, true);
  IF was_open THEN  -- it never left the fair order
    UPDATE {schema}.tenant_queue SET vt = v_vt WHERE ctid = (
      SELECT ctid FROM {schema}.tenant_queue WHERE queue = p_queue AND tenant = p_tenant ORDER BY queue, tenant, ver DESC LIMIT 1);
  END IF;
  q.waiting := (SELECT coalesce(sum(delayed + ready), 0) FROM {schema}.tenant_queue WHERE queue = p_queue);
  q.due_from := 0;
  q.unparked_to := 0;
  q.vt_scan_from := least(q.vt_scan_from, v_vt);
  PERFORM {schema}.write_queue(q);
END $$;
