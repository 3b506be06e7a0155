-- Apply deltas to `tenant_queue`, `strand` and `queue` (S41, S42). A delta says what happened to a strand without the
-- queue lock: jobs came in, were cancelled, became ready again; a claim ended; a charge was corrected, or refunded.
--
-- Deltas count in the order (xid, ord). A tenant that becomes ready enters the fair order with vt = max(its vt, V): V
-- is the larger of the queue's `vt_floor` and the lowest vt among open tenant queues. So nobody gets credit for idle
-- time. Its `ready_since` is the queue's next number.
--
-- A refund (S68) is a delta of a job that is ready again with a `took`: no other job that is ready again has one. It lowers vt,
-- never below 0, before the tenant enters. Where all tenants concerned are open it is an addition and a correction.
-- Parameters: `q` is the queue's row, read by `read_queue` and written back by `write_queue`, once for all that is applied.
-- Index: queue_name, delta_order, tenant_queue_name, tenant_queue_order, strand_name, strand_open, strand_parked_tenant,
-- job_ready, the primary key of estimate. Locks: the caller's queue lock.

-- Apply everything that is committed; return how many deltas.
CREATE OR REPLACE FUNCTION {schema}.apply_all_deltas(p_now bigint, p_queue text) RETURNS int LANGUAGE plpgsql
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  q {schema}.queue;
  step record;
  total int := 0;
BEGIN
  q := {schema}.read_queue(p_queue);
  LOOP
    SELECT * INTO step FROM {schema}.apply_deltas(q, 2000);
    EXIT WHEN step.applied = 0;
    q := step.q;
    total := total + step.applied;
    EXIT WHEN NOT step.is_partial;
  END LOOP;
  IF total > 0 THEN
    PERFORM {schema}.write_queue(q);
  END IF;
  RETURN total;
END $$;

-- Return a queue's row, with `ver` raised for the writes to come; insert it if there is none.
CREATE OR REPLACE FUNCTION {schema}.read_queue(p_queue text) RETURNS {schema}.queue LANGUAGE plpgsql AS $$
DECLARE q {schema}.queue;
BEGIN
  SELECT * INTO q FROM {schema}.queue WHERE name = p_queue ORDER BY name, ver DESC LIMIT 1;
  IF NOT found THEN
    INSERT INTO {schema}.queue (name, ver) VALUES (p_queue, 0) RETURNING * INTO q;
  END IF;
  q.ver := q.ver + 1;
  RETURN q;
END $$;

-- Write a queue's row back.
CREATE OR REPLACE FUNCTION {schema}.write_queue(q {schema}.queue) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_tid tid;
BEGIN
  SELECT ctid INTO v_tid FROM {schema}.queue WHERE name = q.name ORDER BY name, ver DESC LIMIT 1;
  UPDATE {schema}.queue SET ver = q.ver, vt_floor = q.vt_floor, vt_scan_from = q.vt_scan_from, sequence = q.sequence,
    waiting = q.waiting,
                       seen = q.seen, swept_at = q.swept_at, swept_to = q.swept_to,
                       due_from = q.due_from, unparked_to = q.unparked_to
  WHERE ctid = v_tid;
END $$;

-- Apply at most `p_limit` deltas to a queue whose row the caller has read and writes back. What the last complete
-- application could see is not looked at again: `seen` skips the dead rows that an old snapshot keeps. Deltas that
-- only add jobs, and those that add none, are applied as sets; only where their order counts, one by one.
CREATE OR REPLACE FUNCTION {schema}.apply_deltas(INOUT q {schema}.queue, p_limit int, OUT applied int, OUT is_partial boolean)
LANGUAGE plpgsql AS $$
DECLARE
  v_seen pg_snapshot := pg_current_snapshot();
  v_tids tid[];
  v_rows {schema}.delta[];
  v_plain {schema}.delta[];  -- that only add jobs, and refunds
  v_soft {schema}.delta[];   -- that add none: corrections, estimates, ended claims; and refunds
  is_mixed boolean;
  v_delayed_at bigint;
BEGIN
  IF q.seen IS NULL OR pg_snapshot_xmax(q.seen) > pg_snapshot_xmax(v_seen) THEN
    -- Never applied, or the database was restored elsewhere.
    v_tids := array(SELECT ctid FROM {schema}.delta WHERE queue = q.name ORDER BY queue, xid, ord LIMIT p_limit);
  ELSE
    v_tids := array(
      (SELECT d.ctid FROM (SELECT pg_snapshot_xip(q.seen) AS xid) open,
              LATERAL (SELECT ctid FROM {schema}.delta WHERE queue = q.name AND xid = open.xid ORDER BY queue, xid, ord) d
       LIMIT p_limit)
      UNION ALL
      (SELECT ctid FROM {schema}.delta WHERE queue = q.name AND xid >= pg_snapshot_xmax(q.seen)
       ORDER BY queue, xid, ord LIMIT p_limit));
  END IF;
  applied := cardinality(v_tids);
  is_partial := applied >= p_limit;
  IF applied = 0 THEN
    RETURN;
  END IF;
  WITH gone AS (
    DELETE FROM {schema}.delta WHERE ctid = any(v_tids)
    RETURNING *, ready >= 0 AND (ready > 0) = (head_key IS NOT NULL)
                   AND ((vt = 0 AND took IS NULL AND NOT is_freed) OR (ready > 0 AND took IS NOT NULL)) AS is_plain,
              (ready = 0 AND delayed = 0 AND head_key IS NULL) OR (ready > 0 AND took IS NOT NULL) AS is_correction),
  rows AS MATERIALIZED (
    SELECT row(xid, ord, queue, tenant, task, delayed, ready, head_key, head_id, vt, took, is_freed, delayed_at)::{schema}.delta
             AS one, xid, ord, is_plain, is_correction, delayed_at FROM gone)
  SELECT array_agg(one ORDER BY xid, ord), array_agg(one ORDER BY xid, ord) FILTER (WHERE is_plain),
         array_agg(one ORDER BY xid, ord) FILTER (WHERE is_correction), bool_or(NOT is_plain AND NOT is_correction),
         min(delayed_at)
  INTO v_rows, v_plain, v_soft, is_mixed, v_delayed_at FROM rows;
  q.due_from := least(q.due_from, v_delayed_at);
  IF is_mixed OR {schema}.is_order_needed(q.name, v_plain, v_soft) THEN
    q := {schema}.apply_in_order(q, v_rows);
  ELSE
    IF v_plain IS NOT NULL THEN
      q := {schema}.apply_additions(q, v_plain);
    END IF;
    IF v_soft IS NOT NULL THEN
      q := {schema}.apply_corrections(q, v_soft);
    END IF;
  END IF;
  IF NOT is_partial THEN
    q.seen := v_seen;
  END IF;
END $$;

-- Apply deltas that only add jobs, all at once. Once one tenant is ready, V stands still while others enter.
-- Steps: `r` the deltas, `s` one row for each strand with its new head, `strand_rows` with what is stored of it, `t` one row
-- for each tenant, `tenant_rows` with what is stored of it and whether it enters the fair order, `new` with the V at which
-- it enters; then four writes.
CREATE OR REPLACE FUNCTION {schema}.apply_additions(INOUT q {schema}.queue, p_rows {schema}.delta[]) LANGUAGE plpgsql AS $$
DECLARE
  v_lowest bigint := {schema}.lowest_vt(q);
  v_now bigint;  -- V
  v_waiting bigint;
BEGIN
  WITH r AS MATERIALIZED (
    SELECT tenant, task, delayed, ready, head_key, head_id, rank
    FROM unnest(p_rows) WITH ORDINALITY u (xid, ord, queue, tenant, task, delayed, ready, head_key, head_id, vt, took,
                                           is_freed, delayed_at, rank)),
  s AS MATERIALIZED (
    SELECT DISTINCT ON (tenant, task) tenant, task, head_key, head_id, min(rank) OVER (PARTITION BY tenant, task) AS rank
    FROM r WHERE ready > 0 ORDER BY tenant, task, head_key, head_id),
  strand_rows AS MATERIALIZED (
    SELECT s.*, old.* FROM s LEFT JOIN LATERAL (
      SELECT o.ctid AS tid, o.state AS old_state, o.head_key AS old_key, o.head_id AS old_id FROM {schema}.strand o
      WHERE o.queue = q.name AND o.tenant = s.tenant AND o.task = s.task
      ORDER BY o.queue, o.tenant, o.task, o.ver DESC LIMIT 1) old ON true),
  t AS MATERIALIZED (  -- `rank`: of the first strand that this opens; by a union, because a join would be quadratic
    SELECT tenant, sum(delayed)::int AS delayed, sum(ready)::int AS ready, min(head_key) AS head_key, min(rank) AS rank
    FROM (SELECT tenant, delayed, ready, head_key, NULL::bigint AS rank FROM r
          UNION ALL
          SELECT tenant, 0, 0, NULL, rank FROM strand_rows WHERE tid IS NULL OR old_state = {no_ready}) AS parts
    GROUP BY tenant),
  tenant_rows AS MATERIALIZED (
    SELECT t.*, old.*, rank IS NOT NULL AND (old.tid IS NULL OR old.old_state IN ({no_ready}, {all_parked})) AS is_entering
    FROM t LEFT JOIN LATERAL (
      SELECT o.ctid AS tid, o.state AS old_state, o.vt AS old_vt, o.ready_since AS old_since FROM {schema}.tenant_queue o
      WHERE o.queue = q.name AND o.tenant = t.tenant
      ORDER BY o.queue, o.tenant, o.ver DESC LIMIT 1) old ON true),
  new AS MATERIALIZED (
    SELECT *, greatest(q.vt_floor, coalesce(v_lowest,
      first_value(old_vt) OVER (PARTITION BY is_entering ORDER BY rank))) AS v
    FROM tenant_rows),
  new_strands AS (
    INSERT INTO {schema}.strand (queue, tenant, task, ver, state, head_key, head_id)
    SELECT q.name, tenant, task, q.ver, {open}, head_key, head_id FROM strand_rows WHERE tid IS NULL),
  strands AS (
    UPDATE {schema}.strand SET ver = q.ver, head_key = strand_rows.head_key, head_id = strand_rows.head_id,
                               state = CASE old_state WHEN {no_ready} THEN {open} ELSE old_state END
    FROM strand_rows WHERE strand.ctid = strand_rows.tid
      AND (old_state = {no_ready} OR (strand_rows.head_key, strand_rows.head_id) < (old_key, old_id))),
  new_tenant_queues AS (
    INSERT INTO {schema}.tenant_queue (queue, tenant, ver, vt, ready_since, state, delayed, ready, head_key)
    SELECT q.name, tenant, q.ver, CASE WHEN is_entering THEN v ELSE 0 END,
           CASE WHEN is_entering THEN q.sequence + rank ELSE 0 END, CASE WHEN is_entering
             THEN {open} ELSE {no_ready} END, delayed, ready,
           coalesce(head_key, -9223372036854775808)
    FROM new WHERE tid IS NULL),
  tenant_queues AS (
    UPDATE {schema}.tenant_queue SET ver = q.ver, state = {open}, vt = greatest(old_vt, v),
                             ready_since = CASE old_state WHEN {no_ready} THEN q.sequence + rank ELSE old_since END,
                             delayed = tenant_queue.delayed + new.delayed, ready = tenant_queue.ready + new.ready,
                             head_key = least(CASE WHEN old_state <> {no_ready} THEN tenant_queue.head_key END, new.head_key)
    FROM new WHERE tenant_queue.ctid = new.tid AND is_entering),
  counts AS (  -- changes no indexed column: a heap-only update
    UPDATE {schema}.tenant_queue SET delayed = tenant_queue.delayed + new.delayed, ready = tenant_queue.ready + new.ready,
                             head_key = least(tenant_queue.head_key, new.head_key)
    FROM new WHERE tenant_queue.ctid = new.tid AND NOT is_entering)
  SELECT min(v) FILTER (WHERE is_entering), sum(delayed + ready) INTO v_now, v_waiting FROM new;
  q.vt_scan_from := least(q.vt_scan_from, v_now);
  q.sequence := q.sequence + cardinality(p_rows);
  q.waiting := q.waiting + v_waiting;
END $$;

-- Apply deltas that add no jobs and let nobody in: corrections of vt are summed, estimates are learnt in their order.
CREATE OR REPLACE FUNCTION {schema}.apply_corrections(INOUT q {schema}.queue, p_rows {schema}.delta[]) LANGUAGE plpgsql AS $$
DECLARE
  runs record;
  v_low bigint;
BEGIN
  FOR runs IN SELECT task, array_agg(took ORDER BY rank) AS durations
              FROM unnest(p_rows) WITH ORDINALITY u (xid, ord, queue, tenant, task, delayed, ready, head_key, head_id, vt,
                                                     took, is_freed, delayed_at, rank)
              WHERE took IS NOT NULL AND ready = 0 GROUP BY task LOOP
    PERFORM {schema}.update_estimate(q.name, runs.task, runs.durations);
  END LOOP;
  WITH sums AS MATERIALIZED (
    SELECT old.tid, sums.vt FROM (
      SELECT tenant, sum(vt)::bigint AS vt FROM unnest(p_rows) GROUP BY tenant HAVING sum(vt) <> 0) AS sums, LATERAL (
      SELECT o.ctid AS tid FROM {schema}.tenant_queue o WHERE o.queue = q.name AND o.tenant = sums.tenant
      ORDER BY o.queue, o.tenant, o.ver DESC LIMIT 1) AS old),
  moved AS (
    UPDATE {schema}.tenant_queue SET ver = q.ver, vt = tenant_queue.vt + sums.vt FROM sums WHERE tenant_queue.ctid = sums.tid
    RETURNING tenant_queue.vt, tenant_queue.state)
  SELECT min(vt) FILTER (WHERE state = {open}) INTO v_low FROM moved;
  q.vt_scan_from := least(q.vt_scan_from, v_low);
END $$;

-- Whether the order between added jobs and ended claims counts: an end lets a tenant parked at its running limit back
-- in, a vt was corrected while a tenant enters, whose own begins with the lowest, or a refund may end at 0.
CREATE OR REPLACE FUNCTION {schema}.is_order_needed(p_queue text, p_plain {schema}.delta[], p_soft {schema}.delta[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF p_soft IS NULL THEN
    RETURN false;
  END IF;
  RETURN EXISTS (
      SELECT 1 FROM (SELECT DISTINCT tenant FROM unnest(p_soft) WHERE is_freed) AS ended, LATERAL (
        SELECT state, parked FROM {schema}.tenant_queue WHERE queue = p_queue AND tenant = ended.tenant
        ORDER BY queue, tenant, ver DESC LIMIT 1) AS t
      WHERE t.state = {parked} AND t.parked = 'running_limit')
    OR (p_plain IS NOT NULL AND EXISTS (SELECT 1 FROM unnest(p_soft) WHERE vt <> 0) AND (EXISTS (
      SELECT 1 FROM (SELECT DISTINCT tenant FROM unnest(p_plain) WHERE ready > 0) AS added LEFT JOIN LATERAL (
        SELECT state FROM {schema}.tenant_queue WHERE queue = p_queue AND tenant = added.tenant
        ORDER BY queue, tenant, ver DESC LIMIT 1) AS t ON true
      WHERE t.state IS DISTINCT FROM {open})
    OR EXISTS (
      SELECT 1 FROM (SELECT tenant, sum(least(vt, 0)) AS fall FROM unnest(p_soft) GROUP BY tenant
                     HAVING bool_or(ready > 0)) AS refunded, LATERAL (
        SELECT vt FROM {schema}.tenant_queue WHERE queue = p_queue AND tenant = refunded.tenant
        ORDER BY queue, tenant, ver DESC LIMIT 1) AS t
      WHERE t.vt + refunded.fall < 0)));
END $$;

-- Apply deltas of any kind, one by one.
CREATE OR REPLACE FUNCTION {schema}.apply_in_order(INOUT q {schema}.queue, p_rows {schema}.delta[]) LANGUAGE plpgsql AS $$
DECLARE
  d {schema}.delta;
  t record;
  is_refund boolean;
  v_vt bigint;
BEGIN
  FOREACH d IN ARRAY p_rows LOOP
    is_refund := d.ready > 0 AND d.took IS NOT NULL;
    IF d.took IS NOT NULL AND NOT is_refund THEN
      PERFORM {schema}.update_estimate(q.name, d.task, ARRAY[d.took]);
    END IF;
    IF d.ready <> 0 OR d.head_key IS NOT NULL THEN
      PERFORM {schema}.apply_to_strand(q, d);
    END IF;
    SELECT ctid AS tid, vt, state, parked INTO t FROM {schema}.tenant_queue WHERE queue = q.name AND tenant = d.tenant
    ORDER BY queue, tenant, ver DESC LIMIT 1;
    v_vt := coalesce(t.vt, 0) + d.vt;
    IF is_refund THEN
      v_vt := greatest(0, v_vt);
    END IF;
    IF t.tid IS NULL THEN
      INSERT INTO {schema}.tenant_queue (queue, tenant, ver, vt, delayed, ready)
      VALUES (q.name, d.tenant, q.ver, v_vt, d.delayed, d.ready);
    ELSE
      UPDATE {schema}.tenant_queue SET vt = v_vt, delayed = delayed + d.delayed, ready = ready + d.ready,
                               head_key = least(head_key, d.head_key)
      WHERE ctid = t.tid;
      IF t.state = {open} THEN
        q.vt_scan_from := least(q.vt_scan_from, v_vt);
      END IF;
    END IF;
    q.waiting := q.waiting + d.delayed + d.ready;
    q := {schema}.refresh_tenant_queue(q, d.tenant, d.is_freed AND t.parked = 'running_limit');
  END LOOP;
END $$;

-- Let a strand follow one delta: a lower head, or the head that is left in `job_ready`.
CREATE OR REPLACE FUNCTION {schema}.apply_to_strand(q {schema}.queue, d {schema}.delta) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  o record;
  head record;
BEGIN
  SELECT ctid AS tid, state, head_key, head_id INTO o FROM {schema}.strand
  WHERE queue = q.name AND tenant = d.tenant AND task = d.task ORDER BY queue, tenant, task, ver DESC LIMIT 1;
  IF d.ready > 0 THEN
    IF o IS NULL THEN
      INSERT INTO {schema}.strand (queue, tenant, task, ver, state, head_key, head_id)
      VALUES (q.name, d.tenant, d.task, q.ver, {open}, d.head_key, d.head_id);
    ELSIF o.state = {no_ready} OR (d.head_key, d.head_id) < (o.head_key, o.head_id) THEN
      UPDATE {schema}.strand SET ver = q.ver, head_key = d.head_key, head_id = d.head_id, state = greatest(state,
        {open}::smallint)
      WHERE ctid = o.tid;
    END IF;
    RETURN;
  END IF;
  IF o IS NULL OR o.state = {no_ready} THEN
    RETURN;
  END IF;
  IF (d.head_key, d.head_id) < (o.head_key, o.head_id) THEN
    o.head_key := d.head_key;
    o.head_id := d.head_id;
  END IF;
  SELECT sort_key, id INTO head FROM {schema}.job
  WHERE (queue, tenant, task, sort_key, id) >= (q.name, d.tenant, d.task, o.head_key, o.head_id)
    AND (queue, tenant, task) <= (q.name, d.tenant, d.task) AND state = {ready}
  ORDER BY queue, tenant, task, sort_key, id LIMIT 1;
  IF found THEN
    UPDATE {schema}.strand SET ver = q.ver, head_key = head.sort_key, head_id = head.id WHERE ctid = o.tid;
  ELSE
    UPDATE {schema}.strand SET ver = q.ver, state = {no_ready}, head_key = NULL, head_id = NULL, parked = NULL, subject = NULL,
                               gate = NULL, parked_until = NULL
    WHERE ctid = o.tid;
  END IF;
END $$;

-- Set the state of a tenant queue from its strands: open, all parked or no ready job; parked stays unless `p_unpark`. One that
-- becomes open enters at V. Whether a strand is open is asked in an order that only strand_open has, and without a
-- sort: any other index would show all strands that ever were.
CREATE OR REPLACE FUNCTION {schema}.refresh_tenant_queue(INOUT q {schema}.queue, p_tenant text, p_unpark boolean)
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
  t record;
  v_state smallint;
  is_open boolean;
BEGIN
  SELECT ctid AS tid, vt, state, ready_since, head_key INTO t FROM {schema}.tenant_queue WHERE queue = q.name
    AND tenant = p_tenant
  ORDER BY queue, tenant, ver DESC LIMIT 1;
  is_open := (SELECT head_key FROM {schema}.strand
              WHERE queue = q.name AND tenant = p_tenant AND state = {open} AND head_key >= t.head_key
              ORDER BY queue, tenant, head_key, head_id LIMIT 1) IS NOT NULL;
  IF NOT is_open AND NOT EXISTS (SELECT 1 FROM {schema}.strand WHERE queue = q.name AND tenant = p_tenant
    AND state = {parked}) THEN
    v_state := {no_ready};
  ELSIF t.state = {parked} AND NOT coalesce(p_unpark, false) THEN
    v_state := {parked};
  ELSE
    v_state := CASE WHEN is_open THEN {open} ELSE {all_parked} END;
  END IF;
  IF v_state = t.state THEN
    RETURN;
  END IF;
  IF v_state = {no_ready} THEN
    t.ready_since := 0;
  ELSIF t.ready_since = 0 THEN
    q.sequence := q.sequence + 1;
    t.ready_since := q.sequence;
  END IF;
  IF v_state = {open} THEN
    t.vt := greatest(t.vt, q.vt_floor, {schema}.lowest_vt(q));
    q.vt_scan_from := least(q.vt_scan_from, t.vt);
  END IF;
  UPDATE {schema}.tenant_queue SET ver = q.ver, state = v_state, vt = t.vt, ready_since = t.ready_since,
                           parked = CASE v_state WHEN {parked} THEN parked END, subject = CASE v_state WHEN {parked}
                             THEN subject END,
                           parked_until = CASE v_state WHEN {parked} THEN parked_until END
  WHERE ctid = t.tid;
END $$;

-- The lowest vt among a queue's open tenant queues; NULL if there is none.
CREATE OR REPLACE FUNCTION {schema}.lowest_vt(q {schema}.queue) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT vt FROM {schema}.tenant_queue WHERE queue = q.name AND state = {open} AND vt >= q.vt_scan_from
          ORDER BY queue, vt, ready_since LIMIT 1);
END $$;

-- Move a task's expected duration a tenth of the way to each that was seen, as `model.scheduling.fairness.learn` does.
CREATE OR REPLACE FUNCTION {schema}.update_estimate(p_queue text, p_task text, p_durations bigint[]) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  v_estimate bigint := coalesce((SELECT estimate FROM {schema}.estimate WHERE queue = p_queue AND task = p_task), 1000000);
  v_took bigint;
BEGIN
  FOREACH v_took IN ARRAY p_durations LOOP
    v_estimate := v_estimate + floor((v_took - v_estimate) / 10.0)::bigint;
  END LOOP;
  INSERT INTO {schema}.estimate (queue, task, estimate) VALUES (p_queue, p_task, v_estimate)
  ON CONFLICT (queue, task) DO UPDATE SET estimate = excluded.estimate;
END $$;
