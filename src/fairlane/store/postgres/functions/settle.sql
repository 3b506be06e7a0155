-- Settle (S36): end the attempts that match (job, fence, worker) in one round trip. Rows are locked in the order of their
-- ids; what follows for turns, in the order in which the attempts are given.
-- `p_minds_cancel`: a cancel asked meanwhile would overrule it; `p_minds_expiry`: an expiry before then would. Such rows
-- stay locked and unsettled and are answered as doubtful: the model decides, and settles them in the same transaction.
-- Index: job_id, which alone has the order that is asked for: of an equality any index that holds the id would do, and
-- while the table is empty one is as cheap as the other. Locks: the rows, FOR UPDATE, ascending by id; this is the only
-- verb that waits for a row of `job`.

CREATE OR REPLACE FUNCTION {s}.queues_at(p_gate text[]) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_gate text; v_queue text; v_found text[] := '{}';
BEGIN
  FOREACH v_gate IN ARRAY p_gate LOOP
    v_queue := '';
    LOOP -- from queue to queue: a gate may have very many strands in line
      SELECT t.queue INTO v_queue FROM {s}.strand t WHERE t.gate = v_gate AND t.queue > v_queue
      ORDER BY t.gate, t.queue LIMIT 1;
      EXIT WHEN NOT FOUND;
      v_found := v_found || v_queue;
    END LOOP;
  END LOOP;
  RETURN v_found;
END $$;

-- One value for all of so many, or one for each.
CREATE OR REPLACE FUNCTION {s}.for_each(p_values anyarray, p_most int) RETURNS anyarray LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE cardinality(p_values) WHEN p_most THEN p_values ELSE array_fill(p_values[1], ARRAY[p_most]) END
$$;

-- Every column but the first has one value for each attempt, or one for all of them. Plans are kept: by the length of
-- an array the planner takes a new one for the better each time, and planning costs as much as settling some thirty jobs.
CREATE OR REPLACE FUNCTION {s}.settle(p_now bigint, p_worker text, p_tenant text, p_id uuid[], p_fence bigint[],
  p_minds_cancel boolean[], p_minds_expiry bigint[], p_state text[], p_because text[], p_delay bigint[],
  p_failures int[], p_crashes int[], p_crashes_alone int[], p_snoozes int[], p_suspect boolean[], p_tail text[],
  p_learns boolean[], p_result bytea[],
  OUT at bigint, OUT settled uuid[], OUT doubtful uuid[], OUT hints text[])
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_n bigint[]; v_tid tid[]; v_gates text[]; v_noted boolean;
  v_most int := cardinality(p_id);
  -- Most batches are successes without a word, all alike.
  is_alike boolean := p_state[1] IN ({succeeded}, {cancelled}) AND 1 = ALL (ARRAY[cardinality(p_state), cardinality(p_because),
    cardinality(p_failures), cardinality(p_crashes), cardinality(p_crashes_alone), cardinality(p_snoozes),
    cardinality(p_suspect), cardinality(p_tail), cardinality(p_result)]);
BEGIN
  at := {s}.now_or(p_now);
  p_fence := {s}.for_each(p_fence, v_most);
  p_minds_cancel := {s}.for_each(p_minds_cancel, v_most);
  p_minds_expiry := {s}.for_each(p_minds_expiry, v_most);
  p_state := {s}.for_each(p_state, v_most);
  -- Rows come in the order of their ids; places must go by `n`, as the columns of the request do.
  SELECT array_agg(l.n ORDER BY l.n) FILTER (WHERE NOT l.doubt), array_agg(l.tid ORDER BY l.n) FILTER (WHERE NOT l.doubt),
         array_agg(l.id) FILTER (WHERE NOT l.doubt), array_agg(l.id) FILTER (WHERE l.doubt),
         array_agg(l.queue) FILTER (WHERE NOT l.doubt AND (l.waits OR l.is_capped)),
         array_agg(l.gate) FILTER (WHERE NOT l.doubt AND l.gate IS NOT NULL),
         bool_or(l.waits OR l.is_capped OR l.charged IS NOT NULL)
  INTO v_n, v_tid, settled, doubtful, hints, v_gates, v_noted
  FROM (SELECT a.n, a.id, h.*, a.state IN ({delayed}, {ready}) AS waits,
               (h.is_cancel_asked AND a.minds_cancel) OR coalesce(h.expires_at <= at + a.minds_expiry, false) AS doubt
        FROM (SELECT * FROM unnest(p_id, p_fence, p_minds_cancel, p_minds_expiry, p_state) WITH ORDINALITY
                   u (id, fence, minds_cancel, minds_expiry, state, n) ORDER BY u.id OFFSET 0) a
        CROSS JOIN LATERAL (
          SELECT j.ctid AS tid, j.queue, j.gate, j.is_capped, j.charged, j.is_cancel_asked, j.expires_at
          FROM {s}.job j
          WHERE j.id BETWEEN a.id AND a.id AND j.fence = a.fence AND j.worker = p_worker
            AND (p_tenant IS NULL OR j.tenant = p_tenant)
          ORDER BY j.id LIMIT 1 FOR UPDATE) h) l;
  IF v_n IS NULL THEN
    RETURN;
  END IF;
  IF v_gates IS NOT NULL THEN
    hints := coalesce(hints, '{}') || {s}.queues_at(array(SELECT DISTINCT unnest(v_gates)));
  END IF;
  IF is_alike AND NOT v_noted THEN
    PERFORM {s}.end_alike(at, v_tid, p_state[1], p_because[1], p_failures[1], p_crashes[1], p_crashes_alone[1], p_snoozes[1],
                          p_suspect[1], p_tail[1], p_result[1]);
    RETURN;
  END IF;
  p_because := {s}.for_each(p_because, v_most);
  p_delay := {s}.for_each(p_delay, v_most);
  p_failures := {s}.for_each(p_failures, v_most);
  p_crashes := {s}.for_each(p_crashes, v_most);
  p_crashes_alone := {s}.for_each(p_crashes_alone, v_most);
  p_snoozes := {s}.for_each(p_snoozes, v_most);
  p_suspect := {s}.for_each(p_suspect, v_most);
  p_tail := {s}.for_each(p_tail, v_most);
  p_learns := {s}.for_each(p_learns, v_most);
  p_result := {s}.for_each(p_result, v_most);
  IF cardinality(v_n) = v_most THEN
    PERFORM {s}.end_jobs(at, v_noted, v_tid, p_state, p_because, p_delay, p_failures, p_crashes, p_crashes_alone,
                         p_snoozes, p_suspect, p_tail, p_learns, p_result);
  ELSE
    PERFORM {s}.end_jobs(at, v_noted, array_agg(a.tid), array_agg(a.state), array_agg(a.because),
                         array_agg(a.delay), array_agg(a.failures), array_agg(a.crashes), array_agg(a.crashes_alone),
                         array_agg(a.snoozes), array_agg(a.suspect), array_agg(a.tail), array_agg(a.learns),
                         array_agg(a.result))
    FROM (SELECT * FROM unnest(v_n, v_tid) l (n, tid)
          JOIN unnest(p_state, p_because, p_delay, p_failures, p_crashes, p_crashes_alone, p_snoozes, p_suspect,
                      p_tail, p_learns, p_result) WITH ORDINALITY
               a (state, because, delay, failures, crashes, crashes_alone, snoozes, suspect, tail, learns, result, n)
            USING (n) ORDER BY n) a;
  END IF;
END $$;
