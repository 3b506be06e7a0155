-- Hand out ready jobs of one queue, fairly across tenants (S35, S41-S48), in one call.
-- The jobs come in the order served; after them one row without an id that says the rest: `fence` is when time alone makes
-- another job claimable (not looked for when the total was reached), `is_alone` that a bound was met, `started_at` the
-- instant, `failures` how many were parked and `snoozes` how many woken so far, for the next wish of the same request.
-- p_total: what is left of the request's total; p_only: as if other tenants had nothing (a peek); p_is_again: the queue
-- was made ready for an earlier wish. Commits asynchronously: the fence makes a claim that a crash undid harmless.
CREATE OR REPLACE FUNCTION {s}.claim(
  p_now bigint, p_worker text, p_lease bigint, p_queue text, p_most int, p_total int, p_headroom int, p_isolates boolean,
  p_only text, p_is_again boolean, p_parked int, p_woken int
) RETURNS SETOF {s}.job LANGUAGE plpgsql
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_now bigint;
  q {s}.queue;
  made record;
  served record;
  v_most int := least(p_most, p_total);
  v_taken int := 0;
  rest {s}.job;
BEGIN
  PERFORM {s}.mutex(p_queue);
  PERFORM set_config('synchronous_commit', 'off', true);
  v_now := {s}.now_or(p_now);
  q := {s}.queue_row(p_queue);
  SELECT * INTO made FROM {s}.make_ready(q, v_now, p_only, p_is_again, p_woken);
  q := made.q;
  rest.is_alone := made.is_partial;
  rest.failures := p_parked;
  rest.snoozes := made.woken;
  IF NOT (SELECT is_blocked FROM {s}.queue_block(v_now, p_queue)) THEN
    IF p_only IS NULL AND p_parked < {park_most} AND p_headroom < p_total AND {s}.can_fill(v_now, p_queue) THEN
      SELECT * INTO served FROM {s}.fill(q, v_now, least(v_most, p_total - p_headroom), p_parked);
      q := served.q;
      v_taken := cardinality(served.tids);
      rest.failures := served.parked;
      RETURN QUERY SELECT * FROM {s}.take(v_now, p_worker, p_lease, p_isolates, served.tids, NULL, NULL, served.capped,
                                          served.has_started);
    END IF;
    IF v_taken < v_most THEN
      SELECT * INTO served FROM {s}.serve(q, v_now, v_most - v_taken, p_total - v_taken, p_headroom, p_only, made.woken,
                                          rest.failures);
      q := served.q;
      v_taken := v_taken + cardinality(served.tids);
      rest.is_alone := rest.is_alone OR served.is_cut;
      rest.failures := served.parked;
      rest.snoozes := served.woken;
      RETURN QUERY SELECT * FROM {s}.take(v_now, p_worker, p_lease, p_isolates, served.tids, served.gates, served.charges,
                                          served.capped, true);
    END IF;
  END IF;
  PERFORM {s}.write_queue(q);
  rest.started_at := v_now;
  IF v_taken < p_total THEN
    rest.fence := {s}.next_due(v_now, p_queue, q);
  END IF;
  RETURN NEXT rest;
END $$;

-- Fold, let in what is due, and wake what can be woken. `is_partial`: a bound was met.
CREATE OR REPLACE FUNCTION {s}.make_ready(
  INOUT q {s}.queue, p_now bigint, p_only text, p_is_again boolean, INOUT woken int, OUT is_partial boolean
) LANGUAGE plpgsql AS $$
DECLARE
  step record;
BEGIN
  SELECT * INTO step FROM {s}.fold_some(q, 5000);
  q := step.q;
  is_partial := step.is_partial;
  IF NOT p_is_again THEN
    SELECT * INTO step FROM {s}.promote_due(q, p_now, {due_most});
    q := step.q;
    is_partial := is_partial OR step.promoted = {due_most};
    q := {s}.heed_changes(q);
    SELECT * INTO step FROM {s}.wake(q, p_now, p_only, woken);
    q := step.q;
    woken := step.woken;
    is_partial := is_partial OR step.is_partial;
  END IF;
END $$;

-- When time alone makes the next job of a queue claimable; NULL if nothing is known. The queue's row may be missing.
CREATE OR REPLACE FUNCTION {s}.next_due(p_now bigint, p_queue text, q {s}.queue) RETURNS bigint LANGUAGE plpgsql
  SET enable_sort = off AS $$
DECLARE
  v_next bigint;
  block record;
BEGIN
  v_next := least(
    (SELECT run_at FROM {s}.job WHERE queue = p_queue AND state = {delayed} AND run_at >= coalesce(q.due_from, 0)
     ORDER BY queue, run_at, id LIMIT 1),
    (SELECT parked_until FROM {s}.turn
     WHERE queue = p_queue AND state = 2 AND parked_until >= {s}.from_of(p_now, q.woken_to)
     ORDER BY queue, parked_until, parked_vt, parked_since LIMIT 1),
    (SELECT parked_until FROM {s}.strand
     WHERE queue = p_queue AND state = 2 AND parked_until >= {s}.from_of(p_now, q.woken_to)
     ORDER BY queue, parked_until, parked_vt, parked_since, task LIMIT 1));
  SELECT * INTO block FROM {s}.queue_block(p_now, p_queue);
  IF block.is_blocked AND block.until IS NOT NULL
     AND (EXISTS (SELECT 1 FROM {s}.strand WHERE queue = p_queue AND state = 1)
          OR EXISTS (SELECT 1 FROM {s}.strand WHERE queue = p_queue AND state = 2)) THEN
    v_next := least(v_next, block.until);
  END IF;
  RETURN v_next;
END $$;

-- Where a look begins that only reads: at what the queue's row says, unless it has none or the clock went back.
CREATE OR REPLACE FUNCTION {s}.from_of(p_now bigint, p_from bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_from <= p_now THEN p_from ELSE 0 END
$$;

-- Say of several queues whether a claim of each could find anything, and when time alone makes something claimable there.
-- One look instead of one claim each, for a worker with many queues and nothing to do. Takes no lock and changes
-- nothing; stable, so that all of it reads one snapshot.
CREATE OR REPLACE FUNCTION {s}.look(p_now bigint, p_queues text[])
RETURNS TABLE (queue text, is_busy boolean, next_due_at bigint) LANGUAGE plpgsql STABLE
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {s}.now_or(p_now);
  v_mark bigint := (SELECT id FROM {s}.mark ORDER BY id DESC LIMIT 1);
  v_queue text;
  q {s}.queue;
  block record;
BEGIN
  FOREACH v_queue IN ARRAY p_queues LOOP
    SELECT * INTO q FROM {s}.queue WHERE name = v_queue ORDER BY name, ver DESC LIMIT 1;
    SELECT * INTO block FROM {s}.queue_block(v_now, v_queue);
    is_busy := {s}.has_deltas(v_queue, q.seen)
      OR EXISTS (SELECT 1 FROM {s}.job j WHERE j.queue = v_queue AND j.state = {delayed} AND j.run_at <= v_now
                   AND j.run_at >= coalesce(q.due_from, 0))
      OR (NOT block.is_blocked
          AND EXISTS (SELECT 1 FROM {s}.turn t WHERE t.queue = v_queue AND t.state = 1 AND t.vt >= q.low))
      OR {s}.is_any_due(v_queue, {s}.from_of(v_now, q.woken_to), v_now)
      OR EXISTS (SELECT 1 FROM {s}.strand t WHERE t.queue = v_queue AND t.gate IS NOT NULL)
      OR (v_mark > coalesce((SELECT m.mark FROM {s}.marked m WHERE m.queue = v_queue), 0)
          AND (EXISTS (SELECT 1 FROM {s}.turn t WHERE t.queue = v_queue AND t.state = 2)
               OR EXISTS (SELECT 1 FROM {s}.strand t WHERE t.queue = v_queue AND t.state = 2)));
    queue := v_queue;
    next_due_at := CASE WHEN NOT is_busy THEN {s}.next_due(v_now, v_queue, q) END;
    RETURN NEXT;
  END LOOP;
END $$;

-- Whether a queue has deltas that the last whole fold could not see.
CREATE OR REPLACE FUNCTION {s}.has_deltas(p_queue text, p_seen pg_snapshot) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_seen IS NULL OR pg_snapshot_xmax(p_seen) > pg_snapshot_xmax(pg_current_snapshot()) THEN
    RETURN EXISTS (SELECT 1 FROM {s}.delta WHERE queue = p_queue);
  END IF;
  RETURN EXISTS (SELECT 1 FROM {s}.delta WHERE queue = p_queue AND xid >= pg_snapshot_xmax(p_seen))
    OR EXISTS (SELECT 1 FROM (SELECT pg_snapshot_xip(p_seen) AS xid) open,
               LATERAL (SELECT 1 FROM {s}.delta WHERE queue = p_queue AND xid = open.xid LIMIT 1) d);
END $$;
