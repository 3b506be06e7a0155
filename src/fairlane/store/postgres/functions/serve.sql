-- Serve one job after the other in the fair order, whatever may hold them back (S42-S48).
-- Turns and strands are changed as it goes; the jobs are only chosen, `take` makes them running. What it meets and may
-- not serve is parked. Index: turn_order, strand_open, job_ready, job_running. Locks: the caller's mutex of the queue,
-- and that of the gates from the first task on that has a gate or a rate. Nothing here needs a sort: with one, all of a
-- tenant's strands, and what an old snapshot keeps of them, would be read for the first of those that are open.
CREATE OR REPLACE FUNCTION {s}.serve(
  INOUT q {s}.queue, p_now bigint, p_most int, p_total int, p_headroom int, p_only text, INOUT woken int,
  INOUT parked int, OUT tids tid[], OUT gates text[], OUT charges bigint[], OUT capped boolean[], OUT is_cut boolean
) LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
  v_queue {s}.term;           -- the queue's own rate and cost
  has_holds boolean := EXISTS (SELECT 1 FROM {s}.hold WHERE kind IN ('tenant', 'task') AND verb = 'paused');
  tenants text[] := '{}';     -- known so far, and of each:
  limits {s}.term[] := '{}';
  running int[] := '{}';      -- claims in this queue, of this call too
  strides bigint[] := '{}';
  tasks text[] := '{}';       -- known so far, and of each:
  rules {s}.term[] := '{}';
  k int;
  i int;
  t record;
  s record;
  jobs record;
  filled record;
  v_limits {s}.term;
  v_task {s}.term;
  v_gate {s}.term;
  v_reason text;
  v_subject text;
  v_until bigint;
  v_cost bigint;
  is_served boolean;
  is_late boolean;            -- only tenants with nothing running may be served
BEGIN
  tids := '{}';
  gates := '{}';
  charges := '{}';
  capped := '{}';
  is_cut := false;
  SELECT * INTO v_queue FROM {s}.term_of(p_now, 'queue', q.name);
  WHILE cardinality(tids) < p_most LOOP
    IF parked >= {park_most} THEN
      is_cut := true;
      EXIT;
    END IF;

    -- Whose turn is it?
    is_late := p_total - cardinality(tids) <= p_headroom;
    IF p_only IS NOT NULL THEN
      SELECT ctid AS tid, tenant, vt, ready_since, head_key, arrival, pace INTO t FROM {s}.turn
      WHERE queue = q.name AND tenant = p_only AND {s}.is_ready(q.name, p_only)
      ORDER BY queue, tenant, ver DESC LIMIT 1;
    ELSIF is_late THEN
      SELECT ctid AS tid, tenant, vt, ready_since, head_key, arrival, pace INTO t FROM {s}.turn
      WHERE queue = q.name AND state = 1 AND vt >= q.low AND {s}.has_none_running(q.name, tenant)
        AND NOT tenant = any(tenants[1:0] || array(SELECT u.name FROM unnest(tenants, running) u (name, jobs)
                                                   WHERE u.jobs > 0))
      ORDER BY queue, vt, ready_since LIMIT 1;
    ELSE
      SELECT ctid AS tid, tenant, vt, ready_since, head_key, arrival, pace INTO t FROM {s}.turn
      WHERE queue = q.name AND state = 1 AND vt >= q.low ORDER BY queue, vt, ready_since LIMIT 1;
    END IF;
    IF t.tid IS NULL THEN
      SELECT * INTO filled FROM {s}.fill_gates(q, p_now, p_only, woken, gates);
      q := filled.q;
      woken := filled.woken;
      is_cut := is_cut OR filled.is_partial;
      EXIT WHEN NOT filled.is_any_ready;
      CONTINUE;
    END IF;
    k := array_position(tenants, t.tenant);
    IF k IS NULL THEN
      k := cardinality(tenants) + 1;
      SELECT * INTO v_limits FROM {s}.limits_of(p_now, q.name, t.tenant);
      tenants[k] := t.tenant;
      limits[k] := v_limits;
      strides[k] := {s}.stride_of(p_now, t.tenant);
      running[k] := CASE WHEN v_limits.running IS NOT NULL THEN
        (SELECT count(*) FROM {s}.job WHERE (queue, tenant) BETWEEN (q.name, t.tenant) AND (q.name, t.tenant)
                                        AND state = {running}) ELSE 0 END;
    ELSE
      v_limits := limits[k];
    END IF;

    -- May the tenant run?
    v_reason := NULL;
    IF has_holds THEN
      SELECT 'paused', nullif(until, 9223372036854775807) INTO v_reason, v_until
      FROM {s}.hold_of(p_now, 'paused', 'tenant', t.tenant);
    END IF;
    IF v_reason IS NULL AND running[k] >= v_limits.running THEN
      v_reason := 'running_limit';
      v_until := {s}.limits_end(p_now, q.name, t.tenant);
      PERFORM {s}.cap_running(q.name, t.tenant);
    END IF;
    IF v_reason IS NULL AND v_limits.rate_every IS NOT NULL THEN
      v_until := {s}.rate_block(p_now, v_limits, t.arrival, t.pace, {s}.limits_end(p_now, q.name, t.tenant));
      IF v_until IS NOT NULL THEN
        v_reason := 'rate';
      END IF;
    END IF;
    IF v_reason IS NOT NULL THEN
      UPDATE {s}.turn SET ver = q.ver, state = 2, parked = v_reason, subject = 'tenant ' || t.tenant, parked_until = v_until,
                          parked_vt = vt, parked_since = ready_since
      WHERE ctid = t.tid;
      parked := parked + 1;
      CONTINUE;
    END IF;

    -- Which of its strands, and may that run?
    SELECT ctid AS tid, task, head_key, head_id INTO s FROM {s}.strand
    WHERE queue = q.name AND tenant = t.tenant AND state = 1 AND head_key >= t.head_key
    ORDER BY queue, tenant, head_key, head_id LIMIT 1;
    i := array_position(tasks, s.task);
    IF i IS NULL THEN
      i := cardinality(tasks) + 1;
      SELECT * INTO v_task FROM {s}.term_of(p_now, 'task', s.task);
      tasks[i] := s.task;
      rules[i] := v_task;
      IF v_task.gate IS NOT NULL OR v_task.rate_every IS NOT NULL THEN
        PERFORM {s}.gates_mutex();
      END IF;
    ELSE
      v_task := rules[i];
    END IF;
    v_subject := 'task ' || s.task;
    IF has_holds THEN
      SELECT 'paused', nullif(until, 9223372036854775807) INTO v_reason, v_until
      FROM {s}.hold_of(p_now, 'paused', 'task', s.task);
    END IF;
    IF v_reason IS NULL AND v_task.rate_every IS NOT NULL THEN
      v_until := {s}.pace_block(p_now, v_task);
      IF v_until IS NOT NULL THEN
        v_reason := 'rate';
      END IF;
    END IF;
    v_gate := NULL;
    IF v_reason IS NULL AND v_task.gate IS NOT NULL THEN
      v_subject := 'gate ' || v_task.gate;
      SELECT * INTO v_gate FROM {s}.term_of(p_now, 'gate', v_task.gate);
      IF {s}.gate_room(p_now, v_task.gate, gates) = 0 THEN
        v_reason := 'gate';
        v_until := nullif(v_gate.until, 9223372036854775807);
      ELSIF v_gate.rate_every IS NOT NULL THEN
        v_until := {s}.pace_block(p_now, v_gate);
        IF v_until IS NOT NULL THEN
          v_reason := 'rate';
        END IF;
      END IF;
    END IF;
    IF v_reason IS NOT NULL THEN
      UPDATE {s}.strand SET ver = q.ver, state = 2, parked = v_reason, subject = v_subject, parked_until = v_until,
                            gate = CASE v_reason WHEN 'gate' THEN v_task.gate END, parked_vt = t.vt,
                            parked_since = t.ready_since
      WHERE ctid = s.tid;
      q := {s}.refresh(q, t.tenant, false);
      parked := parked + 1;
      CONTINUE;
    END IF;

    -- Its head, and the one behind it. Rows are compared, as no other index than `job_ready` can answer that.
    SELECT array_agg(j.tid) AS tids, array_agg(j.sort_key) AS keys, array_agg(j.id) AS ids,
           (array_agg(j.expires_at))[1] AS expires_at, (array_agg(j.timeout))[1] AS timeout INTO jobs
    FROM (SELECT ctid AS tid, sort_key, id, expires_at, timeout FROM {s}.job
          WHERE (queue, tenant, task, sort_key, id) >= (q.name, t.tenant, s.task, s.head_key, s.head_id)
            AND (queue, tenant, task) <= (q.name, t.tenant, s.task) AND state = {ready}
          ORDER BY queue, tenant, task, sort_key, id LIMIT 2) j;
    IF jobs.ids[1] IS DISTINCT FROM s.head_id THEN  -- it is gone, and the delta that says so is not yet folded
      q := {s}.advance(q, t.tenant, s.tid, jobs.keys[1], jobs.ids[1]);
      CONTINUE;
    END IF;
    is_served := jobs.expires_at IS NULL OR p_now < jobs.expires_at;
    IF is_served THEN
      IF p_only IS NULL AND NOT is_late THEN
        q.low := t.vt;
        q.floor := greatest(q.floor, t.vt);
      ELSE
        q.floor := greatest(q.floor, {s}.lowest(q));
      END IF;
      v_cost := NULL;
      IF v_queue.cost = 'seconds' THEN
        v_cost := least(jobs.timeout, coalesce((SELECT estimate FROM {s}.estimate
                                                WHERE queue = q.name AND task = s.task), 1000000));
      END IF;
      t.vt := t.vt + CASE WHEN v_cost IS NULL THEN strides[k] ELSE {s}.charge(strides[k], v_cost) END;
      IF v_limits.rate_every IS NOT NULL THEN
        t.arrival := {s}.rate_start(p_now, v_limits, t.arrival, t.pace);
        t.pace := v_limits.pace;
      END IF;
      IF v_queue.rate_every IS NOT NULL THEN
        PERFORM {s}.pace_start(p_now, v_queue);
      END IF;
      IF v_task.rate_every IS NOT NULL THEN
        PERFORM {s}.pace_start(p_now, v_task);
      END IF;
      IF v_gate.rate_every IS NOT NULL THEN
        PERFORM {s}.pace_start(p_now, v_gate);
      END IF;
      running[k] := running[k] + 1;
      tids := tids || jobs.tids[1];
      gates := array_append(gates, v_task.gate);
      charges := array_append(charges, v_cost);
      capped := capped || (v_limits.running IS NOT NULL);
    ELSE
      PERFORM {s}.expire_job(p_now, jobs.tids[1]);
    END IF;
    q.waiting := q.waiting - 1;
    UPDATE {s}.turn SET ver = q.ver, vt = t.vt, arrival = t.arrival, pace = t.pace, ready = ready - 1,
                        head_key = s.head_key
    WHERE ctid = t.tid;
    q := {s}.advance(q, t.tenant, s.tid, jobs.keys[2], jobs.ids[2]);
    EXIT WHEN is_served AND v_queue.rate_every IS NOT NULL AND {s}.pace_block(p_now, v_queue) IS NOT NULL;
  END LOOP;
END $$;

-- Set a strand's head, or with none left take it out of the index, and perhaps its tenant.
CREATE OR REPLACE FUNCTION {s}.advance(INOUT q {s}.queue, p_tenant text, p_strand tid, p_key bigint, p_id uuid)
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {s}.strand SET ver = q.ver, head_key = p_key, head_id = p_id, state = CASE WHEN p_id IS NULL THEN 0 ELSE 1 END
  WHERE ctid = p_strand;
  IF p_id IS NULL THEN
    q := {s}.refresh(q, p_tenant, false);
  END IF;
END $$;

-- Whether nothing of a tenant runs in a queue.
CREATE OR REPLACE FUNCTION {s}.has_none_running(p_queue text, p_tenant text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN NOT EXISTS (SELECT 1 FROM {s}.job WHERE (queue, tenant) BETWEEN (p_queue, p_tenant) AND (p_queue, p_tenant)
                                             AND state = {running});
END $$;

-- Let the end of every running claim of a tenant say that it has ended: those from before the limit, too.
-- Skips what is just being settled; `promote` looks for tenants that have room.
CREATE OR REPLACE FUNCTION {s}.cap_running(p_queue text, p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_tids tid[];
BEGIN
  v_tids := array(SELECT ctid FROM {s}.job WHERE (queue, tenant) BETWEEN (p_queue, p_tenant) AND (p_queue, p_tenant)
                    AND state = {running}
                    AND NOT is_capped FOR UPDATE SKIP LOCKED);
  UPDATE {s}.job SET is_capped = true WHERE ctid = any(v_tids);
END $$;

-- Cancel a job whose time is over: into history, and its keys go.
CREATE OR REPLACE FUNCTION {s}.expire_job(p_now bigint, p_job tid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE gone {s}.job;
BEGIN
  DELETE FROM {s}.job WHERE ctid = p_job RETURNING * INTO gone;
  gone.state := {cancelled};
  gone.because := 'expired';
  INSERT INTO {s}.history ({sent}, {status}, settled_at)
  SELECT {sent}, {status}, p_now FROM (SELECT (gone).*) AS job;
  INSERT INTO {s}.tally_delta (tenant, queue, state, jobs) VALUES (gone.tenant, gone.queue, gone.state, 1);
  IF gone.idempotency_key IS NOT NULL THEN
    UPDATE {s}.idempotency SET state = gone.state, settled_at = p_now
    WHERE tenant = gone.tenant AND key = gone.idempotency_key AND id = gone.id;
  END IF;
  IF gone.dedup_key IS NOT NULL THEN
    DELETE FROM {s}.dedup WHERE tenant = gone.tenant AND task = gone.task AND key = gone.dedup_key AND id = gone.id;
  END IF;
END $$;

-- Make chosen jobs running, in the order in which they were chosen, each under a fence that only grows (S36).
CREATE OR REPLACE FUNCTION {s}.take(
  p_now bigint, p_worker text, p_lease bigint, p_isolates boolean, p_tids tid[], p_gates text[], p_charges bigint[],
  p_capped boolean[], p_has_started boolean
) RETURNS SETOF {s}.job LANGUAGE plpgsql AS $$
BEGIN
  IF p_has_started THEN
    -- OFFSET 0 keeps the look by place to itself: else all jobs may be walked, by whatever order suits the join.
    DELETE FROM {s}.dedup d USING unnest(p_tids) AS taken (tid), LATERAL (
      SELECT tenant, task, dedup_key, id FROM {s}.job
      WHERE ctid = taken.tid AND dedup_key IS NOT NULL AND dedup_until = 'started' OFFSET 0) j
    WHERE d.tenant = j.tenant AND d.task = j.task AND d.key = j.dedup_key AND d.id = j.id;
  END IF;
  RETURN QUERY
    UPDATE {s}.job SET state = {running}, attempt = attempt + 1, fence = greatest(fence + 1, p_now), worker = p_worker,
      started_at = p_now, lease_until = p_now + p_lease, gate = taken.gate, is_alone = is_suspect AND p_isolates,
      charged = taken.charge, is_capped = coalesce(taken.is_capped, false)
    FROM unnest(p_tids, p_gates, p_charges, p_capped) AS taken (tid, gate, charge, is_capped)
    WHERE job.ctid = taken.tid
    RETURNING job.*;
END $$;
