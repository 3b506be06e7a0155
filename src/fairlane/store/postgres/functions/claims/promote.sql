-- Promote: keep a queue moving when nobody claims from it. Apply deltas, make due jobs ready, unpark what can be.
-- Parameters: `p_now` is NULL except in tests. Index: job_due, delta_order, queue_name, tenant_queue_no_ready, strand_name,
-- job_running, and those of apply_deltas.sql, policy_changes.sql and unpark.sql. Locks: the queue lock, then that of the
-- gates where strands wait at one; `promote_plan` and `next_queue` take none. Commits without waiting for the disk: what a
-- crash has undone is due again.

-- One queue. `p_limit`: how many due jobs may become ready. `is_any`: something became claimable, so that workers should look.
CREATE OR REPLACE FUNCTION {schema}.promote(
  p_now bigint, p_queue text, p_limit int, OUT promoted int, OUT is_any boolean, OUT is_partial boolean,
  OUT next_due_at bigint
) LANGUAGE plpgsql
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_now bigint;
  q {schema}.queue;
  step record;
BEGIN
  PERFORM {schema}.lock_queue(p_queue);
  PERFORM set_config('synchronous_commit', 'off', true);
  v_now := {schema}.now_or(p_now);
  q := {schema}.read_queue(p_queue);
  IF abs(v_now - q.swept_at) >= 60000000 THEN
    q := {schema}.sweep(q, v_now);
  END IF;
  SELECT * INTO step FROM {schema}.apply_deltas(q, 5000);
  q := step.q;
  is_partial := step.is_partial;
  SELECT * INTO step FROM {schema}.promote_due(q, v_now, p_limit);
  q := step.q;
  promoted := step.promoted;
  PERFORM {schema}.count_budget_reports();
  q := {schema}.apply_policy_changes(q);
  SELECT * INTO step FROM {schema}.unpark(q, v_now, NULL, 0);
  q := step.q;
  is_partial := is_partial OR step.is_partial;
  is_any := step.is_any OR promoted > 0;
  PERFORM {schema}.write_queue(q);
  next_due_at := {schema}.next_due(v_now, p_queue, q);
END $$;

-- Make due delayed jobs of a queue ready, earliest first, and let tenant queues and strands follow; return how many. Deltas
-- must be applied before. The scan starts at `due_from`: every job that is due before is ready, or comes with a delta that is
-- not applied yet and says since when it is delayed. So it does not matter when a job is committed, nor what the clock said
-- in between.
CREATE OR REPLACE FUNCTION {schema}.promote_due(INOUT q {schema}.queue, p_now bigint, p_limit int, OUT promoted int)
LANGUAGE plpgsql AS $$
DECLARE
  v_tids tid[];
  v_rows {schema}.delta[];
BEGIN
  v_tids := array(SELECT ctid FROM {schema}.job
                  WHERE queue = q.name AND state = {delayed} AND run_at >= q.due_from AND run_at <= p_now
                  ORDER BY queue, run_at, id LIMIT p_limit + 1);
  promoted := least(cardinality(v_tids), p_limit);
  IF cardinality(v_tids) <= p_limit THEN
    q.due_from := p_now;
  END IF;
  IF promoted > 0 THEN
    WITH due AS (
      UPDATE {schema}.job SET state = {ready}, because = NULL WHERE ctid = any(v_tids[:p_limit])
      RETURNING tenant, task, run_at, sort_key, id),
    ranked AS (SELECT *, row_number() OVER (ORDER BY run_at, id) AS rank FROM due),
    first AS (
      SELECT DISTINCT ON (tenant, task) *, count(*) OVER strand AS jobs, min(rank) OVER strand AS ord
      FROM ranked WINDOW strand AS (PARTITION BY tenant, task) ORDER BY tenant, task, sort_key, id)
    SELECT array_agg(row(NULL, ord, q.name, tenant, task, -jobs, jobs, sort_key, id, 0, NULL, false, NULL)::{schema}.delta
                     ORDER BY ord) INTO v_rows FROM first;
    q := {schema}.apply_additions(q, v_rows);
  END IF;
END $$;

-- The queues that a pass must visit, and how many of their due jobs are among the earliest `p_limit` of all.
CREATE OR REPLACE FUNCTION {schema}.promote_plan(p_now bigint, p_limit int)
RETURNS TABLE (queue text, due int, is_more boolean) LANGUAGE plpgsql STABLE
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_or(p_now);
BEGIN
  RETURN QUERY
    WITH RECURSIVE names (name) AS (
      SELECT {schema}.next_queue('')
      UNION ALL
      SELECT {schema}.next_queue(names.name) FROM names WHERE names.name IS NOT NULL),
    known AS (SELECT name FROM names WHERE name IS NOT NULL),
    found AS MATERIALIZED (
      SELECT known.name, j.run_at, j.id FROM known, LATERAL (
        SELECT run_at, id FROM {schema}.job
        WHERE job.queue = known.name AND state = {delayed} AND run_at <= v_now AND run_at >= coalesce(least(
          (SELECT due_from FROM {schema}.queue q WHERE q.name = known.name ORDER BY q.name, q.ver DESC LIMIT 1),
          (SELECT min(delayed_at) FROM {schema}.delta d
           WHERE d.queue = known.name AND d.xid >= {schema}.unapplied_since(known.name))), 0)
        ORDER BY queue, run_at, id LIMIT p_limit + 1) j),
    ranked AS (SELECT found.name, row_number() OVER (ORDER BY run_at, id) AS rank FROM found)
    SELECT known.name, (count(ranked.rank) FILTER (WHERE ranked.rank <= p_limit))::int,
           (SELECT count(*) > p_limit FROM found)
    FROM known LEFT JOIN ranked ON ranked.name = known.name GROUP BY known.name ORDER BY known.name;
END $$;

-- The next queue by name, also one that has only deltas yet. The deltas of a queue that has a row are not looked at: they are
-- mostly dead, and an old snapshot keeps them all.
CREATE OR REPLACE FUNCTION {schema}.next_queue(p_after text) RETURNS text LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_known text := (SELECT name FROM {schema}.queue WHERE name > p_after ORDER BY name LIMIT 1);
BEGIN
  RETURN coalesce(
    (SELECT queue FROM {schema}.delta WHERE queue > p_after AND queue < coalesce(v_known, '~')  -- behind every name
     ORDER BY queue LIMIT 1), v_known);
END $$;

-- Once a minute, look at what scans pass over: deltas that a restored database hides behind the last snapshot; jobs and
-- what is parked before the instants at which scans start; tenants parked at their running limit whose last claim ended
-- while it was locked. And forget tenants with nothing left (S41), 500 at a time.
CREATE OR REPLACE FUNCTION {schema}.sweep(INOUT q {schema}.queue, p_now bigint) LANGUAGE plpgsql AS $$
DECLARE
  at_limit record;
BEGIN
  q.seen := NULL;
  q.due_from := 0;
  q.unparked_to := 0;
  q.swept_at := p_now;
  FOR at_limit IN
    SELECT t.tenant FROM {schema}.tenant_queue t, LATERAL {schema}.limits_of(p_now, q.name, t.tenant) l
    WHERE t.queue = q.name AND t.state = {parked} AND t.parked = 'running_limit' AND l.running > (
      SELECT count(*) FROM {schema}.job WHERE (queue, tenant) BETWEEN (q.name, t.tenant) AND (q.name, t.tenant)
                                          AND state = {running})
    LIMIT 500
  LOOP
    q := {schema}.refresh_tenant_queue(q, at_limit.tenant, true);
  END LOOP;
  PERFORM {schema}.forget_idle(q, p_now);
  q.swept_to := q.vt_floor;
END $$;

-- Forget tenants with nothing left whose vt the floor had passed at the last sweep, with their strands. A tenant served since
-- will be back, and finding that it has no row means scanning past all that it ever had and an old snapshot keeps. Each row
-- is found by its newest version and deleted by its location. A running claim still corrects a vt only where seconds are
-- counted, or were when it began. A refund (S68) lowers a vt that the floor has passed: its tenant enters at the floor anyway.
CREATE OR REPLACE FUNCTION {schema}.forget_idle(q {schema}.queue, p_now bigint) RETURNS void LANGUAGE plpgsql
SET enable_sort = off AS $$
DECLARE
  counts_seconds boolean := EXISTS (SELECT 1 FROM {schema}.estimate WHERE queue = q.name)
    OR EXISTS (SELECT 1 FROM {schema}.effective_rule WHERE kind = 'queue' AND name = q.name AND cost = 'seconds');
  idle record;
  v_task text;
  v_strand tid;
  v_tenant_queues tid[] := '{}';
  v_strands tid[] := '{}';
BEGIN
  FOR idle IN
    SELECT ctid AS tid, tenant FROM {schema}.tenant_queue
    WHERE queue = q.name AND state = {no_ready} AND vt <= q.swept_to AND delayed = 0 AND ready = 0 AND next_allowed_at <= p_now
      AND (NOT counts_seconds OR {schema}.has_none_running(q.name, tenant))
    ORDER BY queue, vt LIMIT 500
  LOOP
    v_tenant_queues := v_tenant_queues || idle.tid;
    v_task := '';
    LOOP
      SELECT ctid, task INTO v_strand, v_task FROM {schema}.strand
      WHERE queue = q.name AND tenant = idle.tenant AND task > v_task
      ORDER BY queue, tenant, task, ver DESC LIMIT 1;
      EXIT WHEN NOT found;
      v_strands := v_strands || v_strand;
    END LOOP;
  END LOOP;
  DELETE FROM {schema}.strand WHERE ctid = any(v_strands);
  DELETE FROM {schema}.tenant_queue WHERE ctid = any(v_tenant_queues);
END $$;
