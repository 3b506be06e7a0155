-- Claim (S35, S41-S48, S68): hand out ready jobs of one queue, fairly across tenants, in one call and one transaction.
-- Steps: lock the queue; make it ready (`prepare_queue`); choose, by `claim_batch` where it may, else by `claim_stepwise`;
-- make the chosen jobs running (`start_attempts`); write the queue's row back.
--
-- Parameters: `p_limit` jobs of this queue, `p_total` what is left of the request's total, `p_headroom` the last slots, which
-- go only to tenants with nothing running, `p_isolates` nothing any more (workers of the version before send it, and read
-- `is_alone` in the reply), `p_only` as if other tenants had nothing (a peek), `p_is_again` the queue was made ready for an
-- earlier entry of the same request, `p_parked` and `p_unparked` how many that request has parked and unparked so far,
-- `p_ahead` the last ones of the total, which are claimed before a slot is free for them.
-- Index: queue_name, delta_order, job_due, tenant_queue_order, tenant_queue_parked, strand_open, strand_parked, strand_line,
-- and those of the functions called. Locks: the queue lock; that of the breakers, shared; that of the gates if a task with a gate or rate is met or a
-- strand waits at a gate. Commits without waiting for the disk: the fence makes a claim harmless that a crash has undone.

-- What a claim returns: the jobs in the order served, each with whether its budget is spent (S59), then one row without a job.
-- The columns from `next_due_at` to `open_breakers` are, but for `is_over_budget`, those of the last row alone: when time alone makes another job claimable (NULL: nothing known, or the total was reached), whether a
-- bound was met, so that a repeat may find more, how many were parked and unparked so far, whether the next job may not be
-- claimed ahead, which jobs passed a breaker that is not closed, and which breakers are not (S124). The type follows the columns of a job, which CREATE OR REPLACE could not change: it is made anew with the
-- functions that return it.
DROP TYPE IF EXISTS {schema}.claim_reply CASCADE;
CREATE TYPE {schema}.claim_reply AS (
  {record_types}, is_alone boolean,
  next_due_at bigint, is_partial boolean, parked int, unparked int, is_ahead_cut boolean, is_over_budget boolean, permits uuid[],
  open_breakers text
);

CREATE OR REPLACE FUNCTION {schema}.claim(
  p_now bigint, p_worker text, p_lease bigint, p_queue text, p_limit int, p_total int, p_headroom int, p_isolates boolean,
  p_only text, p_is_again boolean, p_parked int, p_unparked int, p_ahead int DEFAULT 0
) RETURNS SETOF {schema}.claim_reply LANGUAGE plpgsql
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_now bigint;
  q {schema}.queue;
  made record;
  served record;
  v_limit int := least(p_limit, p_total);
  v_taken int := 0;
  reply {schema}.claim_reply;
BEGIN
  PERFORM {schema}.lock_queue(p_queue);
  PERFORM {schema}.lock_breakers(true);
  PERFORM set_config('synchronous_commit', 'off', true);
  v_now := {schema}.now_or(p_now);
  q := {schema}.read_queue(p_queue);
  SELECT * INTO made FROM {schema}.prepare_queue(q, v_now, p_only, p_is_again, p_unparked);
  q := made.q;
  reply.is_partial := made.is_partial;
  reply.parked := p_parked;
  reply.unparked := made.unparked;
  reply.is_ahead_cut := false;
  IF NOT (SELECT is_blocked FROM {schema}.queue_block(v_now, p_queue)) THEN
    IF p_only IS NULL AND p_parked < {max_parked} AND p_headroom < p_total AND {schema}.can_claim_batch(v_now, p_queue) THEN
      SELECT * INTO served FROM {schema}.claim_batch(q, v_now, least(v_limit, p_total - p_headroom), p_total - p_ahead,
                                                     p_parked);
      q := served.q;
      v_taken := cardinality(served.tids);
      reply.parked := served.parked;
      RETURN QUERY SELECT * FROM {schema}.start_attempts(v_now, p_worker, p_lease, served.tids, NULL, NULL,
                                                         served.capped, NULL, served.has_started);
    END IF;
    IF v_taken < v_limit THEN
      SELECT * INTO served FROM {schema}.claim_stepwise(q, v_now, v_limit - v_taken, p_total - v_taken, p_headroom, p_ahead,
                                                        p_only, made.unparked, reply.parked);
      q := served.q;
      v_taken := v_taken + cardinality(served.tids);
      reply.is_partial := reply.is_partial OR served.is_cut;
      reply.is_ahead_cut := served.is_ahead_cut;
      reply.permits := served.permits;
      reply.parked := served.parked;
      reply.unparked := served.unparked;
      RETURN QUERY SELECT * FROM {schema}.start_attempts(v_now, p_worker, p_lease, served.tids, served.gates,
                                                         served.charges, served.capped, served.over, true);
    END IF;
  END IF;
  PERFORM {schema}.write_queue(q);
  IF v_taken < p_total THEN
    reply.next_due_at := {schema}.next_due(v_now, p_queue, q);
  END IF;
  reply.open_breakers := {schema}.open_breakers(v_now);
  RETURN NEXT reply;
END $$;

-- Make chosen jobs running, each under a fence that only grows (S36). They come back in the order of `p_tids`, although
-- nothing sorts: the settings of `claim` leave the planner only a nested loop that begins with the array.
DROP FUNCTION IF EXISTS {schema}.start_attempts(bigint, text, bigint, tid[], text[], bigint[], boolean[], boolean);
CREATE OR REPLACE FUNCTION {schema}.start_attempts(
  p_now bigint, p_worker text, p_lease bigint, p_tids tid[], p_gates text[], p_charges bigint[],
  p_capped boolean[], p_over boolean[], p_has_started boolean
) RETURNS SETOF {schema}.claim_reply LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF p_has_started THEN
    -- Free the keys that are held until the job starts. OFFSET 0 keeps the look-up by location apart: else all jobs may be
    -- walked, in whatever order suits the join.
    DELETE FROM {schema}.dedup d USING unnest(p_tids) AS taken (tid), LATERAL (
      SELECT tenant, task, dedup_key, id FROM {schema}.job
      WHERE ctid = taken.tid AND dedup_key IS NOT NULL AND dedup_until = 'started' OFFSET 0) j
    WHERE d.tenant = j.tenant AND d.task = j.task AND d.key = j.dedup_key AND d.id = j.id;
  END IF;
  RETURN QUERY
    UPDATE {schema}.job SET state = {running}, attempt = attempt + 1, fence = greatest(fence + 1, p_now), worker = p_worker,
      started_at = p_now, lease_until = p_now + p_lease, gate = taken.gate, charged = taken.charge, is_capped = coalesce(taken.is_capped, false)
    FROM unnest(p_tids, p_gates, p_charges, p_capped, p_over) AS taken (tid, gate, charge, is_capped, is_over)
    WHERE job.ctid = taken.tid
    RETURNING {record_of_job}, false, NULL::bigint, NULL::boolean, NULL::int, NULL::int, NULL::boolean, taken.is_over, NULL::uuid[],
      NULL::text;
END $$;

-- Make a queue ready for a claim: apply deltas, let in what is due, unpark what can be. `is_partial`: a bound was met.
CREATE OR REPLACE FUNCTION {schema}.prepare_queue(
  INOUT q {schema}.queue, p_now bigint, p_only text, p_is_again boolean, INOUT unparked int, OUT is_partial boolean
) LANGUAGE plpgsql AS $$
DECLARE
  step record;
BEGIN
  SELECT * INTO step FROM {schema}.apply_deltas(q, 5000);
  q := step.q;
  is_partial := step.is_partial;
  IF NOT p_is_again THEN
    SELECT * INTO step FROM {schema}.promote_due(q, p_now, {max_due});
    q := step.q;
    is_partial := is_partial OR step.promoted = {max_due};
    PERFORM {schema}.count_budget_reports();
    q := {schema}.apply_policy_changes(q);
    SELECT * INTO step FROM {schema}.unpark(q, p_now, p_only, unparked);
    q := step.q;
    unparked := step.unparked;
    is_partial := is_partial OR step.is_partial;
  END IF;
END $$;

-- When time alone makes the next job of a queue claimable; NULL if nothing is known. The queue's row may be missing.
CREATE OR REPLACE FUNCTION {schema}.next_due(p_now bigint, p_queue text, q {schema}.queue) RETURNS bigint LANGUAGE plpgsql
  SET enable_sort = off AS $$
DECLARE
  v_next bigint;
  block record;
BEGIN
  v_next := least(
    (SELECT run_at FROM {schema}.job WHERE queue = p_queue AND state = {delayed} AND run_at >= coalesce(q.due_from, 0)
     ORDER BY queue, run_at, id LIMIT 1),
    (SELECT parked_until FROM {schema}.tenant_queue
     WHERE queue = p_queue AND state = {parked} AND parked_until >= {schema}.scan_from(p_now, q.unparked_to)
     ORDER BY queue, parked_until, parked_vt, parked_since LIMIT 1),
    (SELECT parked_until FROM {schema}.strand
     WHERE queue = p_queue AND state = {parked} AND parked_until >= {schema}.scan_from(p_now, q.unparked_to)
     ORDER BY queue, parked_until, parked_vt, parked_since, task LIMIT 1),
    {schema}.breaker_due(p_now, p_queue));
  SELECT * INTO block FROM {schema}.queue_block(p_now, p_queue);
  IF block.is_blocked AND block.until IS NOT NULL
     AND (EXISTS (SELECT 1 FROM {schema}.strand WHERE queue = p_queue AND state = {open})
          OR EXISTS (SELECT 1 FROM {schema}.strand WHERE queue = p_queue AND state = {parked})) THEN
    v_next := least(v_next, block.until);
  END IF;
  RETURN v_next;
END $$;

-- Where a scan starts that only reads: where the queue's row says, unless there is none or the clock went back.
CREATE OR REPLACE FUNCTION {schema}.scan_from(p_now bigint, p_from bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_from <= p_now THEN p_from ELSE 0 END
$$;

-- Whether a claim of each of these queues could find anything, and when time alone makes something claimable there. One look
-- instead of one claim each, for a worker with many queues and nothing to do. Takes no lock and changes nothing; STABLE, so
-- that all of it reads one snapshot.
CREATE OR REPLACE FUNCTION {schema}.check_queues(p_now bigint, p_queues text[])
RETURNS TABLE (queue text, is_busy boolean, next_due_at bigint) LANGUAGE plpgsql STABLE
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
  v_now bigint := {schema}.now_or(p_now);
  v_change bigint := (SELECT id FROM {schema}.policy_change ORDER BY id DESC LIMIT 1);
  v_queue text;
  q {schema}.queue;
  block record;
BEGIN
  FOREACH v_queue IN ARRAY p_queues LOOP
    SELECT * INTO q FROM {schema}.queue WHERE name = v_queue ORDER BY name, ver DESC LIMIT 1;
    SELECT * INTO block FROM {schema}.queue_block(v_now, v_queue);
    is_busy := {schema}.has_deltas(v_queue, q.seen)
      OR EXISTS (SELECT 1 FROM {schema}.job j WHERE j.queue = v_queue AND j.state = {delayed} AND j.run_at <= v_now
                   AND j.run_at >= coalesce(q.due_from, 0))
      OR (NOT block.is_blocked
          AND EXISTS (SELECT 1 FROM {schema}.tenant_queue t WHERE t.queue = v_queue AND t.state = {open}
            AND t.vt >= q.vt_scan_from))
      OR {schema}.is_any_unpark_due(v_queue, {schema}.scan_from(v_now, q.unparked_to), v_now)
      OR EXISTS (SELECT 1 FROM {schema}.strand t WHERE t.queue = v_queue AND t.gate IS NOT NULL)
      OR (EXISTS (SELECT 1 FROM {schema}.budget_report)
          AND EXISTS (SELECT 1 FROM {schema}.strand t WHERE t.queue = v_queue AND t.parked = 'budget'))
      OR (v_change > coalesce((SELECT m.change_id FROM {schema}.applied_policy_change m WHERE m.queue = v_queue), 0)
          AND (EXISTS (SELECT 1 FROM {schema}.tenant_queue t WHERE t.queue = v_queue AND t.state = {parked})
               OR EXISTS (SELECT 1 FROM {schema}.strand t WHERE t.queue = v_queue AND t.state = {parked})));
    queue := v_queue;
    next_due_at := CASE WHEN NOT is_busy THEN {schema}.next_due(v_now, v_queue, q) END;
    RETURN NEXT;
  END LOOP;
END $$;

-- Whether a queue has deltas that the last complete application could not see.
CREATE OR REPLACE FUNCTION {schema}.has_deltas(p_queue text, p_seen pg_snapshot) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_seen IS NULL OR pg_snapshot_xmax(p_seen) > pg_snapshot_xmax(pg_current_snapshot()) THEN
    RETURN EXISTS (SELECT 1 FROM {schema}.delta WHERE queue = p_queue);
  END IF;
  RETURN EXISTS (SELECT 1 FROM {schema}.delta WHERE queue = p_queue AND xid >= pg_snapshot_xmax(p_seen))
    OR EXISTS (SELECT 1 FROM (SELECT pg_snapshot_xip(p_seen) AS xid) open,
               LATERAL (SELECT 1 FROM {schema}.delta WHERE queue = p_queue AND xid = open.xid LIMIT 1) d);
END $$;
