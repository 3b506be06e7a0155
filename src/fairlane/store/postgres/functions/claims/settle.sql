-- Settle (S36): end the attempts that match (job, fence, worker), in one round trip. Rows are locked in the order of
-- their ids; deltas are written in the order of the request.
-- Parameters: every column but `p_id` has one value for each attempt, or one for all of them. `p_minds_cancel`: a
-- cancel requested meanwhile overrules the settlement; `p_minds_expiry`: an expiry within that delay does. Such rows
-- stay locked and unsettled and are returned as `doubtful`: the model decides, and settles them in the same
-- transaction. The mark `end_params` is the list `ENDS` of columns.py.
-- Index: job_id. The look-up by BETWEEN ... ORDER BY id LIMIT 1 is one that only this index can answer; for an
-- equality the planner might take any index that holds the id. Locks: the rows, FOR UPDATE, ascending by id. Only
-- this and, for a second, a cancel wait for a row of `job`.

DROP FUNCTION IF EXISTS {schema}.settle(bigint, text, text, uuid[], bigint[], boolean[], bigint[], text[], text[], bigint[], int[], int[], int[], int[], boolean[], text[], boolean[], bytea[]);

DROP FUNCTION IF EXISTS {schema}.settle(bigint, text, text, uuid[], bigint[], boolean[], bigint[], text[], text[], bigint[], int[], int[], int[], int[], boolean[], text[], boolean[], bytea[], int[], bytea[]);

-- Plans are stored: the planner would take a new one for each array length, and planning costs as much as settling some
-- thirty jobs.
CREATE OR REPLACE FUNCTION {schema}.settle(p_now bigint, p_worker text, p_tenant text, p_id uuid[], p_fence bigint[],
  p_minds_cancel boolean[], p_minds_expiry bigint[], {end_params}, p_spent bigint[] DEFAULT NULL,
  OUT at bigint, OUT settled uuid[], OUT doubtful uuid[], OUT hints text[])
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_n bigint[]; v_tid tid[]; v_gates text[]; needs_deltas boolean;
  v_waiting text[]; -- the queues in which strands wait for room in a budget
  v_count int := cardinality(p_id);
  -- Most batches are successes without log or result, all alike.
  is_alike boolean := p_state[1] IN ({succeeded}, {cancelled}) AND 1 = ALL (ARRAY[{end_sizes}]);
BEGIN
  at := {schema}.now_or(p_now);
  p_fence := {schema}.expand(p_fence, v_count);
  p_minds_cancel := {schema}.expand(p_minds_cancel, v_count);
  p_minds_expiry := {schema}.expand(p_minds_expiry, v_count);
  p_state := {schema}.expand(p_state, v_count);
  v_waiting := {schema}.report_budgets(at, p_tenant, p_id, p_fence, {schema}.expand(coalesce(p_spent, '{0}'), v_count), 'settled');
  -- Rows are locked in the order of their ids; their locations are collected by `n`, the order of the request.
  SELECT array_agg(l.n ORDER BY l.n) FILTER (WHERE NOT l.doubt), array_agg(l.tid ORDER BY l.n) FILTER (WHERE NOT l.doubt),
         array_agg(l.id) FILTER (WHERE NOT l.doubt), array_agg(l.id) FILTER (WHERE l.doubt),
         array_agg(l.queue) FILTER (WHERE NOT l.doubt AND (l.waits OR l.is_capped)),
         array_agg(l.gate) FILTER (WHERE NOT l.doubt AND l.gate IS NOT NULL),
         bool_or(l.waits OR l.is_capped OR l.charged IS NOT NULL)
  INTO v_n, v_tid, settled, doubtful, hints, v_gates, needs_deltas
  FROM (SELECT a.n, a.id, h.*, a.state IN ({delayed}, {ready}) AS waits,
               (h.is_cancel_asked AND a.minds_cancel) OR coalesce(h.expires_at <= at + a.minds_expiry, false) AS doubt
        FROM (SELECT * FROM unnest(p_id, p_fence, p_minds_cancel, p_minds_expiry, p_state) WITH ORDINALITY
                   u (id, fence, minds_cancel, minds_expiry, state, n) ORDER BY u.id OFFSET 0) a
        CROSS JOIN LATERAL (
          SELECT j.ctid AS tid, j.queue, j.gate, j.is_capped, j.charged, j.is_cancel_asked, j.expires_at
          FROM {schema}.job j
          WHERE j.id BETWEEN a.id AND a.id AND j.fence = a.fence AND j.worker = p_worker
            AND (p_tenant IS NULL OR j.tenant = p_tenant)
          ORDER BY j.id LIMIT 1 FOR UPDATE) h) l;
  hints := coalesce(hints, '{}') || v_waiting;
  IF v_n IS NULL THEN
    RETURN;
  END IF;
  IF v_gates IS NOT NULL THEN
    hints := hints || {schema}.queues_at_gates(array(SELECT DISTINCT unnest(v_gates)));
  END IF;
  IF is_alike AND NOT needs_deltas THEN
    PERFORM {schema}.end_jobs_alike(at, v_tid, {end_args_alike});
    RETURN;
  END IF;
  {end_expanded}
  IF cardinality(v_n) = v_count THEN
    PERFORM {schema}.end_jobs(at, needs_deltas, v_tid, {end_args});
  ELSE
    PERFORM {schema}.end_jobs(at, needs_deltas, array_agg(tid), {end_arrays})
    FROM (SELECT * FROM unnest(v_n, v_tid) l (n, tid)
          JOIN unnest({end_args}) WITH ORDINALITY a ({end_names}, n) USING (n) ORDER BY n) a;
  END IF;
END $$;

-- A value for each item: an array of that length, or one value for all.
CREATE OR REPLACE FUNCTION {schema}.expand(p_values anyarray, p_count int) RETURNS anyarray LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE cardinality(p_values) WHEN p_count THEN p_values ELSE array_fill(p_values[1], ARRAY[p_count]) END
$$;

-- The queues in which strands wait in the line of these gates.
CREATE OR REPLACE FUNCTION {schema}.queues_at_gates(p_gate text[]) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_gate text; v_queue text; v_found text[] := '{}';
BEGIN
  FOREACH v_gate IN ARRAY p_gate LOOP
    v_queue := '';
    LOOP -- from queue to queue: a gate may have very many strands in line
      SELECT t.queue INTO v_queue FROM {schema}.strand t WHERE t.gate = v_gate AND t.queue > v_queue
      ORDER BY t.gate, t.queue LIMIT 1;
      EXIT WHEN NOT FOUND;
      v_found := v_found || v_queue;
    END LOOP;
  END LOOP;
  RETURN v_found;
END $$;
