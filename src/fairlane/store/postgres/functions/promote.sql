-- Keep one queue moving when nobody claims from it: fold, let in what is due, wake what can be woken.
-- p_most: how many due jobs may become ready. `is_any`: somebody became claimable, so that workers should look.
-- Index, locks: as in `ready.sql`.
CREATE OR REPLACE FUNCTION {s}.promote(
  p_now bigint, p_queue text, p_most int, OUT promoted int, OUT is_any boolean, OUT is_partial boolean,
  OUT next_due_at bigint
) LANGUAGE plpgsql
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_now bigint;
  q {s}.queue;
  step record;
BEGIN
  PERFORM {s}.mutex(p_queue);
  PERFORM set_config('synchronous_commit', 'off', true);
  v_now := {s}.now_or(p_now);
  q := {s}.queue_row(p_queue);
  IF abs(v_now - q.swept_at) >= 60000000 THEN
    q := {s}.sweep(q, v_now);
  END IF;
  SELECT * INTO step FROM {s}.fold_some(q, 5000);
  q := step.q;
  is_partial := step.is_partial;
  SELECT * INTO step FROM {s}.promote_due(q, v_now, p_most);
  q := step.q;
  promoted := step.promoted;
  q := {s}.heed_changes(q);
  SELECT * INTO step FROM {s}.wake(q, v_now, NULL, 0);
  q := step.q;
  is_partial := is_partial OR step.is_partial;
  is_any := step.is_any OR promoted > 0;
  PERFORM {s}.write_queue(q);
  next_due_at := {s}.next_due(v_now, p_queue, q);
END $$;

-- Look, once a minute, at what is otherwise known by hints: deltas that a restored database hides behind the last fold's
-- snapshot; jobs and waits before the instants at which looks begin; tenants parked for their running limit whose last
-- claim ended while it was locked; and tenants with nothing left whose clock V has passed, which are forgotten (S41), 500
-- at a time.
CREATE OR REPLACE FUNCTION {s}.sweep(INOUT q {s}.queue, p_now bigint) LANGUAGE plpgsql AS $$
DECLARE
  held record;
BEGIN
  q.seen := NULL;
  q.due_from := 0;
  q.woken_to := 0;
  q.swept_at := p_now;
  FOR held IN
    SELECT t.tenant FROM {s}.turn t, LATERAL {s}.limits_of(p_now, q.name, t.tenant) l
    WHERE t.queue = q.name AND t.state = 2 AND t.parked = 'running_limit' AND l.running > (
      SELECT count(*) FROM {s}.job WHERE (queue, tenant) BETWEEN (q.name, t.tenant) AND (q.name, t.tenant)
                                     AND state = {running})
    LIMIT 500
  LOOP
    q := {s}.refresh(q, held.tenant, true);
  END LOOP;
  PERFORM {s}.forget_idle(q, p_now);
  q.swept_to := q.floor;
END $$;

-- Forget tenants with nothing left whose clock V had passed a sweep ago, with their strands: who was served since will be
-- back, and to find that somebody has no row takes a look at all that he ever had and an old snapshot keeps. Each row is
-- found by its newest version and taken out by its place. What runs still corrects a clock only where seconds are counted,
-- or were when it began.
CREATE OR REPLACE FUNCTION {s}.forget_idle(q {s}.queue, p_now bigint) RETURNS void LANGUAGE plpgsql
SET enable_sort = off AS $$
DECLARE
  counts_seconds boolean := EXISTS (SELECT 1 FROM {s}.estimate WHERE queue = q.name)
    OR EXISTS (SELECT 1 FROM {s}.term WHERE kind = 'queue' AND name = q.name AND cost = 'seconds');
  idle record;
  v_task text;
  v_strand tid;
  v_turns tid[] := '{}';
  v_strands tid[] := '{}';
BEGIN
  FOR idle IN
    SELECT ctid AS tid, tenant FROM {s}.turn
    WHERE queue = q.name AND state = 0 AND vt <= q.swept_to AND delayed = 0 AND ready = 0 AND arrival <= p_now
      AND (NOT counts_seconds OR {s}.has_none_running(q.name, tenant))
    ORDER BY queue, vt LIMIT 500
  LOOP
    v_turns := v_turns || idle.tid;
    v_task := '';
    LOOP
      SELECT ctid, task INTO v_strand, v_task FROM {s}.strand
      WHERE queue = q.name AND tenant = idle.tenant AND task > v_task
      ORDER BY queue, tenant, task, ver DESC LIMIT 1;
      EXIT WHEN NOT found;
      v_strands := v_strands || v_strand;
    END LOOP;
  END LOOP;
  DELETE FROM {s}.strand WHERE ctid = any(v_strands);
  DELETE FROM {s}.turn WHERE ctid = any(v_turns);
END $$;

-- The next queue by its name, also one that has only deltas yet. Those of a queue that has a row are not looked at: they
-- are mostly dead, and an old snapshot keeps them all.
CREATE OR REPLACE FUNCTION {s}.next_queue(p_after text) RETURNS text LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_known text := (SELECT name FROM {s}.queue WHERE name > p_after ORDER BY name LIMIT 1);
BEGIN
  RETURN coalesce(
    (SELECT queue FROM {s}.delta WHERE queue > p_after AND queue < coalesce(v_known, '~')  -- behind every name
     ORDER BY queue LIMIT 1), v_known);
END $$;

-- The queues that a pass must visit, and how many of their due jobs belong to the earliest `p_most` of all.
CREATE OR REPLACE FUNCTION {s}.promote_plan(p_now bigint, p_most int)
RETURNS TABLE (queue text, due int, is_more boolean) LANGUAGE plpgsql STABLE
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {s}.now_or(p_now);
BEGIN
  RETURN QUERY
    WITH RECURSIVE names (name) AS (
      SELECT {s}.next_queue('')
      UNION ALL
      SELECT {s}.next_queue(names.name) FROM names WHERE names.name IS NOT NULL),
    known AS (SELECT name FROM names WHERE name IS NOT NULL),
    found AS MATERIALIZED (
      SELECT known.name, j.run_at, j.id FROM known, LATERAL (
        SELECT run_at, id FROM {s}.job
        WHERE job.queue = known.name AND state = {delayed} AND run_at <= v_now AND run_at >= coalesce(least(
          (SELECT due_from FROM {s}.queue q WHERE q.name = known.name ORDER BY q.name, q.ver DESC LIMIT 1),
          (SELECT min(delayed_at) FROM {s}.delta d
           WHERE d.queue = known.name AND d.xid >= {s}.unfolded_since(known.name))), 0)
        ORDER BY queue, run_at, id LIMIT p_most + 1) j),
    ranked AS (SELECT found.name, row_number() OVER (ORDER BY run_at, id) AS rank FROM found)
    SELECT known.name, (count(ranked.rank) FILTER (WHERE ranked.rank <= p_most))::int,
           (SELECT count(*) > p_most FROM found)
    FROM known LEFT JOIN ranked ON ranked.name = known.name GROUP BY known.name ORDER BY known.name;
END $$;
