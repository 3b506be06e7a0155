-- Claim one job after the other in the fair order, whatever may hold them back (S42-S48, S68).
-- Tenant queues and strands are changed as it goes; jobs are only chosen, `start_attempts` makes them running. What is met
-- and may not run is parked. Each pass of the loop: which tenant is next, may it run, which of its strands, may that run,
-- its first job. `claim_batch` does the same for many at once where nothing holds anybody back.
-- Parameters: as of `claim`. `is_cut`: a bound was met. `is_ahead_cut`: the next job may not be claimed ahead.
-- Index: tenant_queue_order, strand_open, job_ready, job_running.
-- Locks: the caller's queue lock, and that of the gates from the first task on that has a gate or a rate. Without
-- enable_sort: with a sort, all of a tenant's strands, and what an old snapshot keeps of them, would be read to find the
-- first open one.
DROP FUNCTION IF EXISTS {schema}.claim_stepwise({schema}.queue, bigint, int, int, int, text, int, int);
DROP FUNCTION IF EXISTS {schema}.claim_stepwise({schema}.queue, bigint, int, int, int, int, text, int, int);
CREATE OR REPLACE FUNCTION {schema}.claim_stepwise(
  INOUT q {schema}.queue, p_now bigint, p_limit int, p_total int, p_headroom int, p_ahead int, p_only text,
  INOUT unparked int, INOUT parked int, OUT tids tid[], OUT gates text[], OUT charges bigint[], OUT capped boolean[],
  OUT over boolean[], OUT permits uuid[], OUT is_cut boolean, OUT is_ahead_cut boolean
) LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
  v_queue {schema}.effective_rule; -- the queue's own rate and cost
  has_holds boolean := EXISTS (SELECT 1 FROM {schema}.hold WHERE kind IN ('tenant', 'task') AND verb = 'paused');
  has_open boolean := {schema}.is_any_breaker_open();
  tenants text[] := '{}';     -- met so far, and of each:
  limits {schema}.effective_rule[] := '{}';
  running int[] := '{}';      -- claims in this queue, of this call too
  strides bigint[] := '{}';
  tasks text[] := '{}';       -- met so far, and of each:
  rules {schema}.effective_rule[] := '{}';
  tenant_at int;
  task_at int;
  t record;
  strand record;
  jobs record;
  step record;
  v_limits {schema}.effective_rule;
  v_task {schema}.effective_rule;
  v_gate {schema}.effective_rule;
  block record;               -- what holds the tenant or the strand back
  v_reason text;
  is_guarded boolean;         -- its breaker is not closed
  v_cost bigint;
  is_over boolean;            -- its budget is spent: a job that starts is dead
  is_served boolean;
  is_in_headroom boolean;     -- only tenants with nothing running may be served
BEGIN
  tids := '{}';
  gates := '{}';
  charges := '{}';
  capped := '{}';
  permits := '{}';
  over := '{}';
  is_cut := false;
  is_ahead_cut := false;
  SELECT * INTO v_queue FROM {schema}.rule_of(p_now, 'queue', q.name);
  WHILE cardinality(tids) < p_limit LOOP
    IF parked >= {max_parked} THEN
      is_cut := true;
      EXIT;
    END IF;

    -- Which tenant is next?
    is_in_headroom := p_total - cardinality(tids) <= p_headroom;
    IF p_only IS NOT NULL THEN
      SELECT ctid AS tid, tenant, vt, ready_since, head_key, next_allowed_at, rate_id INTO t FROM {schema}.tenant_queue
      WHERE queue = q.name AND tenant = p_only AND {schema}.is_ready(q.name, p_only)
      ORDER BY queue, tenant, ver DESC LIMIT 1;
    ELSIF is_in_headroom THEN
      SELECT ctid AS tid, tenant, vt, ready_since, head_key, next_allowed_at, rate_id INTO t FROM {schema}.tenant_queue
      WHERE queue = q.name AND state = {open} AND vt >= q.vt_scan_from AND {schema}.has_none_running(q.name, tenant)
        AND NOT tenant = any(tenants[1:0] || array(SELECT u.name FROM unnest(tenants, running) u (name, jobs)
                                                   WHERE u.jobs > 0))
      ORDER BY queue, vt, ready_since LIMIT 1;
    ELSE
      SELECT ctid AS tid, tenant, vt, ready_since, head_key, next_allowed_at, rate_id INTO t FROM {schema}.tenant_queue
      WHERE queue = q.name AND state = {open} AND vt >= q.vt_scan_from ORDER BY queue, vt, ready_since LIMIT 1;
    END IF;
    IF t.tid IS NULL THEN
      SELECT * INTO step FROM {schema}.unpark_at_gates(q, p_now, p_only, unparked, gates, permits);
      q := step.q;
      unparked := step.unparked;
      is_cut := is_cut OR step.is_partial;
      EXIT WHEN NOT step.is_any_ready;
      CONTINUE;
    END IF;
    tenant_at := array_position(tenants, t.tenant);
    IF tenant_at IS NULL THEN
      tenant_at := cardinality(tenants) + 1;
      SELECT * INTO v_limits FROM {schema}.limits_of(p_now, q.name, t.tenant);
      tenants[tenant_at] := t.tenant;
      limits[tenant_at] := v_limits;
      strides[tenant_at] := {schema}.stride_of(p_now, t.tenant);
      running[tenant_at] := CASE WHEN v_limits.running IS NOT NULL THEN
        (SELECT count(*) FROM {schema}.job WHERE (queue, tenant) BETWEEN (q.name, t.tenant) AND (q.name, t.tenant)
                                             AND state = {running}) ELSE 0 END;
    ELSE
      v_limits := limits[tenant_at];
    END IF;

    -- May the tenant run?
    v_reason := NULL;
    IF has_holds OR v_limits.running IS NOT NULL OR v_limits.rate_every IS NOT NULL THEN
      SELECT * INTO block FROM {schema}.tenant_block(p_now, q.name, t.tenant, v_limits, running[tenant_at], t.next_allowed_at,
                                                     t.rate_id, has_holds);
      v_reason := block.reason;
    END IF;
    IF v_reason IS NOT NULL THEN
      PERFORM {schema}.park_tenant(q, t.tid, t.tenant, v_reason, block.until);
      parked := parked + 1;
      CONTINUE;
    END IF;

    -- Which of its strands is first, and may that run?
    SELECT ctid AS tid, task, head_key, head_id INTO strand FROM {schema}.strand
    WHERE queue = q.name AND tenant = t.tenant AND state = {open} AND head_key >= t.head_key
    ORDER BY queue, tenant, head_key, head_id LIMIT 1;
    task_at := array_position(tasks, strand.task);
    IF task_at IS NULL THEN
      task_at := cardinality(tasks) + 1;
      SELECT * INTO v_task FROM {schema}.rule_of(p_now, 'task', strand.task);
      tasks[task_at] := strand.task;
      rules[task_at] := v_task;
      IF v_task.gate IS NOT NULL OR v_task.rate_every IS NOT NULL OR v_task.budget IS NOT NULL
         OR (has_open AND v_task.breaker IS NOT NULL) THEN
        PERFORM {schema}.lock_gates();
      END IF;
    ELSE
      v_task := rules[task_at];
    END IF;
    v_gate := NULL;
    is_guarded := false;
    is_over := false;
    IF has_holds OR v_task.gate IS NOT NULL OR v_task.rate_every IS NOT NULL OR v_task.budget IS NOT NULL
       OR (has_open AND v_task.breaker IS NOT NULL) THEN
      SELECT * INTO block FROM {schema}.strand_block(p_now, strand.task, t.tenant, v_task, gates, permits, has_holds, has_open);
      v_reason := block.reason;
      v_gate := block.gate;
      is_guarded := block.is_guarded;
      is_over := block.is_over;
    END IF;
    IF v_reason IS NOT NULL THEN
      PERFORM {schema}.park_strand(q, strand.tid, v_reason, block.subject, block.until, v_task.gate, t.vt, t.ready_since);
      q := {schema}.refresh_tenant_queue(q, t.tenant, false);
      parked := parked + 1;
      CONTINUE;
    END IF;

    -- Its head, and the job behind it. Rows are compared, because no other index than job_ready can answer that.
    SELECT array_agg(j.tid) AS tids, array_agg(j.sort_key) AS keys, array_agg(j.id) AS ids,
           (array_agg(j.expires_at))[1] AS expires_at, (array_agg(j.timeout))[1] AS timeout,
           (array_agg(j.is_careful))[1] AS is_careful INTO jobs
    FROM (SELECT ctid AS tid, sort_key, id, expires_at, timeout,
                 {schema}.is_careful(is_suspect, at_most_once, failures, max_attempts, dedup_key, dedup_until) AS is_careful
          FROM {schema}.job
          WHERE (queue, tenant, task, sort_key, id) >= (q.name, t.tenant, strand.task, strand.head_key, strand.head_id)
            AND (queue, tenant, task) <= (q.name, t.tenant, strand.task) AND state = {ready}
          ORDER BY queue, tenant, task, sort_key, id LIMIT 2) j;
    IF jobs.ids[1] IS DISTINCT FROM strand.head_id THEN  -- it is gone, and the delta that says so is not applied yet
      q := {schema}.advance_strand(q, t.tenant, strand.tid, jobs.keys[1], jobs.ids[1]);
      CONTINUE;
    END IF;
    -- Serve it, or cancel it if it has expired: either way the head moves on.
    is_served := jobs.expires_at IS NULL OR p_now < jobs.expires_at;
    -- Once only the part ahead is left, the claim ends before a job that a claim without a start would cost something.
    is_ahead_cut := is_served AND p_total - cardinality(tids) <= p_ahead
      AND (jobs.is_careful OR is_guarded OR v_task.gate IS NOT NULL OR v_task.budget IS NOT NULL OR v_task.rate_every IS NOT NULL OR v_limits.rate_every IS NOT NULL
           OR v_queue.rate_every IS NOT NULL);
    EXIT WHEN is_ahead_cut;
    IF is_served THEN
      IF p_only IS NULL AND NOT is_in_headroom THEN
        q.vt_scan_from := t.vt;
        q.vt_floor := greatest(q.vt_floor, t.vt);
      ELSE
        q.vt_floor := greatest(q.vt_floor, {schema}.lowest_vt(q));
      END IF;
      v_cost := NULL;
      IF v_queue.cost = 'seconds' THEN
        v_cost := least(jobs.timeout, coalesce((SELECT estimate FROM {schema}.estimate
                                                WHERE queue = q.name AND task = strand.task), 1000000));
      END IF;
      t.vt := t.vt + CASE WHEN v_cost IS NULL THEN strides[tenant_at] ELSE {schema}.charge(strides[tenant_at], v_cost) END;
      IF v_limits.rate_every IS NOT NULL THEN
        t.next_allowed_at := {schema}.next_allowed_after(p_now, v_limits, t.next_allowed_at, t.rate_id);
        t.rate_id := v_limits.rate_id;
      END IF;
      IF v_queue.rate_every IS NOT NULL THEN
        PERFORM {schema}.record_start(p_now, v_queue);
      END IF;
      IF v_task.rate_every IS NOT NULL THEN
        PERFORM {schema}.record_start(p_now, v_task);
      END IF;
      IF v_gate.rate_every IS NOT NULL THEN
        PERFORM {schema}.record_start(p_now, v_gate);
      END IF;
      IF is_guarded THEN
        PERFORM {schema}.take_permits(p_now, v_task.breaker, t.tenant, jobs.ids[1], permits);
        permits := permits || jobs.ids[1];
      END IF;
      IF is_over THEN
        PERFORM {schema}.note_no_room(p_now, v_task.budget, t.tenant, false);
      ELSIF v_task.budget IS NOT NULL THEN
        PERFORM {schema}.reserve_budget(p_now, v_task.budget, jobs.tids[1]);
      END IF;
      over := over || is_over;
      running[tenant_at] := running[tenant_at] + 1;
      tids := tids || jobs.tids[1];
      gates := array_append(gates, v_task.gate);
      charges := array_append(charges, v_cost);
      capped := capped || (v_limits.running IS NOT NULL);
    ELSE
      PERFORM {schema}.expire_job(p_now, jobs.tids[1]);
    END IF;
    q.waiting := q.waiting - 1;
    UPDATE {schema}.tenant_queue SET ver = q.ver, vt = t.vt, next_allowed_at = t.next_allowed_at, rate_id = t.rate_id,
                                     ready = ready - 1, head_key = strand.head_key
    WHERE ctid = t.tid;
    q := {schema}.advance_strand(q, t.tenant, strand.tid, jobs.keys[2], jobs.ids[2]);
    EXIT WHEN is_served AND v_queue.rate_every IS NOT NULL AND {schema}.stored_rate_block(p_now, v_queue) IS NOT NULL;
  END LOOP;
END $$;

-- Set a strand's head; with none left, take it out of the index, and perhaps its tenant.
CREATE OR REPLACE FUNCTION {schema}.advance_strand(INOUT q {schema}.queue, p_tenant text, p_strand tid, p_key bigint, p_id uuid)
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.strand SET ver = q.ver, head_key = p_key, head_id = p_id,
                             state = CASE WHEN p_id IS NULL THEN {no_ready} ELSE {open} END
  WHERE ctid = p_strand;
  IF p_id IS NULL THEN
    q := {schema}.refresh_tenant_queue(q, p_tenant, false);
  END IF;
END $$;
