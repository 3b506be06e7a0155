-- Fold what happened outside the mutex into `turn`, `strand` and `queue` (S41, S42).
-- Deltas count in the order (xid, ord). A tenant that becomes ready enters with vt = max(vt, V), V being the larger of
-- the queue's floor and the lowest clock among ready turns; its `ready_since` is the queue's next number.
-- Index: delta_order, turn_name, turn_order, strand_name, strand_open, strand_held, job_ready. Locks: the caller's mutex.

-- Fold everything that is committed; say how many deltas.
CREATE OR REPLACE FUNCTION {s}.fold(p_now bigint, p_queue text) RETURNS int LANGUAGE plpgsql
  SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  q {s}.queue;
  step record;
  total int := 0;
BEGIN
  q := {s}.queue_row(p_queue);
  LOOP
    SELECT * INTO step FROM {s}.fold_some(q, 2000);
    EXIT WHEN step.folded = 0;
    q := step.q;
    total := total + step.folded;
    EXIT WHEN NOT step.is_partial;
  END LOOP;
  IF total > 0 THEN
    PERFORM {s}.write_queue(q);
  END IF;
  RETURN total;
END $$;

-- Give a queue's row, a new one with the next `ver` if there is none.
CREATE OR REPLACE FUNCTION {s}.queue_row(p_queue text) RETURNS {s}.queue LANGUAGE plpgsql AS $$
DECLARE q {s}.queue;
BEGIN
  SELECT * INTO q FROM {s}.queue WHERE name = p_queue ORDER BY name, ver DESC LIMIT 1;
  IF NOT found THEN
    INSERT INTO {s}.queue (name, ver) VALUES (p_queue, 0) RETURNING * INTO q;
  END IF;
  q.ver := q.ver + 1;
  RETURN q;
END $$;

-- Write a queue's row back. Its `ver` was raised when it was read.
CREATE OR REPLACE FUNCTION {s}.write_queue(q {s}.queue) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_tid tid;
BEGIN
  SELECT ctid INTO v_tid FROM {s}.queue WHERE name = q.name ORDER BY name, ver DESC LIMIT 1;
  UPDATE {s}.queue SET ver = q.ver, floor = q.floor, low = q.low, sequence = q.sequence, waiting = q.waiting,
                       seen = q.seen, swept_at = q.swept_at, swept_to = q.swept_to,
                       due_from = q.due_from, woken_to = q.woken_to
  WHERE ctid = v_tid;
END $$;

-- Fold at most `p_most` deltas into a queue whose row the caller holds and writes back.
-- What the last whole fold could see is not looked at again: `seen` leaves the dead rows that an old snapshot keeps.
CREATE OR REPLACE FUNCTION {s}.fold_some(INOUT q {s}.queue, p_most int, OUT folded int, OUT is_partial boolean)
LANGUAGE plpgsql AS $$
DECLARE
  v_seen pg_snapshot := pg_current_snapshot();
  v_tids tid[];
  v_rows {s}.delta[];
  v_plain {s}.delta[];  -- that only add jobs
  v_soft {s}.delta[];   -- that add none: corrections, estimates, ends of claims
  is_mixed boolean;
  v_delayed_at bigint;
BEGIN
  IF q.seen IS NULL OR pg_snapshot_xmax(q.seen) > pg_snapshot_xmax(v_seen) THEN  -- never folded, or restored elsewhere
    v_tids := array(SELECT ctid FROM {s}.delta WHERE queue = q.name ORDER BY queue, xid, ord LIMIT p_most);
  ELSE
    v_tids := array(
      (SELECT d.ctid FROM (SELECT pg_snapshot_xip(q.seen) AS xid) open,
              LATERAL (SELECT ctid FROM {s}.delta WHERE queue = q.name AND xid = open.xid ORDER BY queue, xid, ord) d
       LIMIT p_most)
      UNION ALL
      (SELECT ctid FROM {s}.delta WHERE queue = q.name AND xid >= pg_snapshot_xmax(q.seen)
       ORDER BY queue, xid, ord LIMIT p_most));
  END IF;
  folded := cardinality(v_tids);
  is_partial := folded >= p_most;
  IF folded = 0 THEN
    RETURN;
  END IF;
  WITH gone AS (
    DELETE FROM {s}.delta WHERE ctid = any(v_tids)
    RETURNING *, ready >= 0 AND (ready > 0) = (head_key IS NOT NULL) AND vt = 0 AND took IS NULL AND NOT is_freed AS is_plain,
              ready = 0 AND delayed = 0 AND head_key IS NULL AS is_soft),
  rows AS MATERIALIZED (
    SELECT row(xid, ord, queue, tenant, task, delayed, ready, head_key, head_id, vt, took, is_freed, delayed_at)::{s}.delta
             AS one, xid, ord, is_plain, is_soft, delayed_at FROM gone)
  SELECT array_agg(one ORDER BY xid, ord), array_agg(one ORDER BY xid, ord) FILTER (WHERE is_plain),
         array_agg(one ORDER BY xid, ord) FILTER (WHERE is_soft), bool_or(NOT is_plain AND NOT is_soft),
         min(delayed_at)
  INTO v_rows, v_plain, v_soft, is_mixed, v_delayed_at FROM rows;
  q.due_from := least(q.due_from, v_delayed_at);
  IF is_mixed OR {s}.is_order_needed(q.name, v_plain, v_soft) THEN
    q := {s}.fold_each(q, v_rows);
  ELSE
    IF v_plain IS NOT NULL THEN
      q := {s}.fold_plain(q, v_plain);
    END IF;
    IF v_soft IS NOT NULL THEN
      q := {s}.fold_soft(q, v_soft);
    END IF;
  END IF;
  IF NOT is_partial THEN
    q.seen := v_seen;
  END IF;
END $$;

-- The lowest clock among a queue's ready turns; NULL if there is none.
CREATE OR REPLACE FUNCTION {s}.lowest(q {s}.queue) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT vt FROM {s}.turn WHERE queue = q.name AND state = 1 AND vt >= q.low
          ORDER BY queue, vt, ready_since LIMIT 1);
END $$;

-- Fold deltas that only add jobs, all at once. Once one tenant is ready, V stands still while others enter.
CREATE OR REPLACE FUNCTION {s}.fold_plain(INOUT q {s}.queue, p_rows {s}.delta[]) LANGUAGE plpgsql AS $$
DECLARE
  v_lowest bigint := {s}.lowest(q);
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
  so AS MATERIALIZED (
    SELECT s.*, old.* FROM s LEFT JOIN LATERAL (
      SELECT o.ctid AS tid, o.state AS old_state, o.head_key AS old_key, o.head_id AS old_id FROM {s}.strand o
      WHERE o.queue = q.name AND o.tenant = s.tenant AND o.task = s.task
      ORDER BY o.queue, o.tenant, o.task, o.ver DESC LIMIT 1) old ON true),
  t AS MATERIALIZED (  -- `rank` is that of the first strand that this opens; by a union, as a join would be quadratic
    SELECT tenant, sum(delayed)::int AS delayed, sum(ready)::int AS ready, min(head_key) AS head_key, min(rank) AS rank
    FROM (SELECT tenant, delayed, ready, head_key, NULL::bigint AS rank FROM r
          UNION ALL
          SELECT tenant, 0, 0, NULL, rank FROM so WHERE tid IS NULL OR old_state = 0) AS said
    GROUP BY tenant),
  told AS MATERIALIZED (
    SELECT t.*, old.*, rank IS NOT NULL AND (old.tid IS NULL OR old.old_state IN (0, 3)) AS is_entering
    FROM t LEFT JOIN LATERAL (
      SELECT o.ctid AS tid, o.state AS old_state, o.vt AS old_vt, o.ready_since AS old_since FROM {s}.turn o
      WHERE o.queue = q.name AND o.tenant = t.tenant
      ORDER BY o.queue, o.tenant, o.ver DESC LIMIT 1) old ON true),
  new AS MATERIALIZED (
    SELECT *, greatest(q.floor, coalesce(v_lowest, first_value(old_vt) OVER (PARTITION BY is_entering ORDER BY rank))) AS v
    FROM told),
  new_strands AS (
    INSERT INTO {s}.strand (queue, tenant, task, ver, state, head_key, head_id)
    SELECT q.name, tenant, task, q.ver, 1, head_key, head_id FROM so WHERE tid IS NULL),
  strands AS (
    UPDATE {s}.strand SET ver = q.ver, head_key = so.head_key, head_id = so.head_id,
                          state = CASE old_state WHEN 0 THEN 1 ELSE old_state END
    FROM so WHERE strand.ctid = so.tid
      AND (old_state = 0 OR (so.head_key, so.head_id) < (old_key, old_id))),
  new_turns AS (
    INSERT INTO {s}.turn (queue, tenant, ver, vt, ready_since, state, delayed, ready, head_key)
    SELECT q.name, tenant, q.ver, CASE WHEN is_entering THEN v ELSE 0 END,
           CASE WHEN is_entering THEN q.sequence + rank ELSE 0 END, is_entering::int, delayed, ready,
           coalesce(head_key, -9223372036854775808)
    FROM new WHERE tid IS NULL),
  turns AS (
    UPDATE {s}.turn SET ver = q.ver, state = 1, vt = greatest(old_vt, v),
                        ready_since = CASE old_state WHEN 0 THEN q.sequence + rank ELSE old_since END,
                        delayed = turn.delayed + new.delayed, ready = turn.ready + new.ready,
                        head_key = least(CASE WHEN old_state <> 0 THEN turn.head_key END, new.head_key)
    FROM new WHERE turn.ctid = new.tid AND is_entering),
  counts AS (  -- names no column of an index: the row stays where it is
    UPDATE {s}.turn SET delayed = turn.delayed + new.delayed, ready = turn.ready + new.ready,
                        head_key = least(turn.head_key, new.head_key)
    FROM new WHERE turn.ctid = new.tid AND NOT is_entering)
  SELECT min(v) FILTER (WHERE is_entering), sum(delayed + ready) INTO v_now, v_waiting FROM new;
  q.low := least(q.low, v_now);
  q.sequence := q.sequence + cardinality(p_rows);
  q.waiting := q.waiting + v_waiting;
END $$;

-- Whether the order between jobs that were added and claims that ended counts: an end lets somebody parked at his limit
-- back in, or a clock was corrected while a tenant entered, whose own begins with the lowest.
CREATE OR REPLACE FUNCTION {s}.is_order_needed(p_queue text, p_plain {s}.delta[], p_soft {s}.delta[]) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF p_soft IS NULL THEN
    RETURN false;
  END IF;
  RETURN EXISTS (
      SELECT 1 FROM (SELECT DISTINCT tenant FROM unnest(p_soft) WHERE is_freed) AS freed, LATERAL (
        SELECT state, parked FROM {s}.turn WHERE queue = p_queue AND tenant = freed.tenant
        ORDER BY queue, tenant, ver DESC LIMIT 1) AS t
      WHERE t.state = 2 AND t.parked = 'running_limit')
    OR (p_plain IS NOT NULL AND EXISTS (SELECT 1 FROM unnest(p_soft) WHERE vt <> 0) AND EXISTS (
      SELECT 1 FROM (SELECT DISTINCT tenant FROM unnest(p_plain) WHERE ready > 0) AS fed LEFT JOIN LATERAL (
        SELECT state FROM {s}.turn WHERE queue = p_queue AND tenant = fed.tenant
        ORDER BY queue, tenant, ver DESC LIMIT 1) AS t ON true
      WHERE t.state IS DISTINCT FROM 1));
END $$;

-- Fold deltas that add no jobs and let nobody in: corrections are sums, estimates are learnt in their order.
CREATE OR REPLACE FUNCTION {s}.fold_soft(INOUT q {s}.queue, p_rows {s}.delta[]) LANGUAGE plpgsql AS $$
DECLARE
  runs record;
  v_low bigint;
BEGIN
  FOR runs IN SELECT task, array_agg(took ORDER BY rank) AS tooks
              FROM unnest(p_rows) WITH ORDINALITY u (xid, ord, queue, tenant, task, delayed, ready, head_key, head_id, vt,
                                                     took, is_freed, delayed_at, rank)
              WHERE took IS NOT NULL GROUP BY task LOOP
    PERFORM {s}.learn(q.name, runs.task, runs.tooks);
  END LOOP;
  WITH sums AS MATERIALIZED (
    SELECT old.tid, sums.vt FROM (
      SELECT tenant, sum(vt)::bigint AS vt FROM unnest(p_rows) GROUP BY tenant HAVING sum(vt) <> 0) AS sums, LATERAL (
      SELECT o.ctid AS tid FROM {s}.turn o WHERE o.queue = q.name AND o.tenant = sums.tenant
      ORDER BY o.queue, o.tenant, o.ver DESC LIMIT 1) AS old),
  moved AS (
    UPDATE {s}.turn SET ver = q.ver, vt = turn.vt + sums.vt FROM sums WHERE turn.ctid = sums.tid
    RETURNING turn.vt, turn.state)
  SELECT min(vt) FILTER (WHERE state = 1) INTO v_low FROM moved;
  q.low := least(q.low, v_low);
END $$;

-- Fold deltas one after the other: whatever they say.
CREATE OR REPLACE FUNCTION {s}.fold_each(INOUT q {s}.queue, p_rows {s}.delta[]) LANGUAGE plpgsql AS $$
DECLARE
  d {s}.delta;
  t record;
BEGIN
  FOREACH d IN ARRAY p_rows LOOP
    IF d.took IS NOT NULL THEN
      PERFORM {s}.learn(q.name, d.task, ARRAY[d.took]);
    END IF;
    IF d.ready <> 0 OR d.head_key IS NOT NULL THEN
      PERFORM {s}.fold_strand(q, d);
    END IF;
    SELECT ctid AS tid, vt, state, parked INTO t FROM {s}.turn WHERE queue = q.name AND tenant = d.tenant
    ORDER BY queue, tenant, ver DESC LIMIT 1;
    IF NOT found THEN
      INSERT INTO {s}.turn (queue, tenant, ver, vt, delayed, ready)
      VALUES (q.name, d.tenant, q.ver, d.vt, d.delayed, d.ready);
    ELSE
      UPDATE {s}.turn SET vt = vt + d.vt, delayed = delayed + d.delayed, ready = ready + d.ready,
                          head_key = least(head_key, d.head_key)
      WHERE ctid = t.tid;
      IF t.state = 1 THEN
        q.low := least(q.low, t.vt + d.vt);
      END IF;
    END IF;
    q.waiting := q.waiting + d.delayed + d.ready;
    q := {s}.refresh(q, d.tenant, d.is_freed AND t.parked = 'running_limit');
  END LOOP;
END $$;

-- Let a strand follow one delta: a lower head, or the head that is left in `job_ready`.
CREATE OR REPLACE FUNCTION {s}.fold_strand(q {s}.queue, d {s}.delta) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  o record;
  head record;
BEGIN
  SELECT ctid AS tid, state, head_key, head_id INTO o FROM {s}.strand
  WHERE queue = q.name AND tenant = d.tenant AND task = d.task ORDER BY queue, tenant, task, ver DESC LIMIT 1;
  IF d.ready > 0 THEN
    IF o IS NULL THEN
      INSERT INTO {s}.strand (queue, tenant, task, ver, state, head_key, head_id)
      VALUES (q.name, d.tenant, d.task, q.ver, 1, d.head_key, d.head_id);
    ELSIF o.state = 0 OR (d.head_key, d.head_id) < (o.head_key, o.head_id) THEN
      UPDATE {s}.strand SET ver = q.ver, head_key = d.head_key, head_id = d.head_id, state = greatest(state, 1::smallint)
      WHERE ctid = o.tid;
    END IF;
    RETURN;
  END IF;
  IF o IS NULL OR o.state = 0 THEN
    RETURN;
  END IF;
  IF (d.head_key, d.head_id) < (o.head_key, o.head_id) THEN
    o.head_key := d.head_key;
    o.head_id := d.head_id;
  END IF;
  SELECT sort_key, id INTO head FROM {s}.job
  WHERE (queue, tenant, task, sort_key, id) >= (q.name, d.tenant, d.task, o.head_key, o.head_id)
    AND (queue, tenant, task) <= (q.name, d.tenant, d.task) AND state = {ready}
  ORDER BY queue, tenant, task, sort_key, id LIMIT 1;
  IF found THEN
    UPDATE {s}.strand SET ver = q.ver, head_key = head.sort_key, head_id = head.id WHERE ctid = o.tid;
  ELSE
    UPDATE {s}.strand SET ver = q.ver, state = 0, head_key = NULL, head_id = NULL, parked = NULL, subject = NULL,
                          gate = NULL, parked_until = NULL
    WHERE ctid = o.tid;
  END IF;
END $$;

-- Let a turn enter or leave the ready index, as its strands and parks now say; entering activates. Whether a strand is
-- open is asked for in an order that only one index has, and no sort: any other would show all strands there ever were.
CREATE OR REPLACE FUNCTION {s}.refresh(INOUT q {s}.queue, p_tenant text, p_unpark boolean) LANGUAGE plpgsql
SET enable_sort = off AS $$
DECLARE
  t record;
  v_state smallint;
  is_open boolean;
BEGIN
  SELECT ctid AS tid, vt, state, ready_since, head_key INTO t FROM {s}.turn WHERE queue = q.name AND tenant = p_tenant
  ORDER BY queue, tenant, ver DESC LIMIT 1;
  is_open := (SELECT head_key FROM {s}.strand
              WHERE queue = q.name AND tenant = p_tenant AND state = 1 AND head_key >= t.head_key
              ORDER BY queue, tenant, head_key, head_id LIMIT 1) IS NOT NULL;
  IF NOT is_open AND NOT EXISTS (SELECT 1 FROM {s}.strand WHERE queue = q.name AND tenant = p_tenant AND state = 2) THEN
    v_state := 0;
  ELSIF t.state = 2 AND NOT coalesce(p_unpark, false) THEN
    v_state := 2;
  ELSE
    v_state := CASE WHEN is_open THEN 1 ELSE 3 END;
  END IF;
  IF v_state = t.state THEN
    RETURN;
  END IF;
  IF v_state = 0 THEN
    t.ready_since := 0;
  ELSIF t.ready_since = 0 THEN
    q.sequence := q.sequence + 1;
    t.ready_since := q.sequence;
  END IF;
  IF v_state = 1 THEN
    t.vt := greatest(t.vt, q.floor, {s}.lowest(q));
    q.low := least(q.low, t.vt);
  END IF;
  UPDATE {s}.turn SET ver = q.ver, state = v_state, vt = t.vt, ready_since = t.ready_since,
                      parked = CASE v_state WHEN 2 THEN parked END, subject = CASE v_state WHEN 2 THEN subject END,
                      parked_until = CASE v_state WHEN 2 THEN parked_until END
  WHERE ctid = t.tid;
END $$;

-- Move a task's expected duration a tenth of the way to each that was seen, as `model.fairness.learn`.
CREATE OR REPLACE FUNCTION {s}.learn(p_queue text, p_task text, p_tooks bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_estimate bigint := coalesce((SELECT estimate FROM {s}.estimate WHERE queue = p_queue AND task = p_task), 1000000);
  v_took bigint;
BEGIN
  FOREACH v_took IN ARRAY p_tooks LOOP
    v_estimate := v_estimate + floor((v_took - v_estimate) / 10.0)::bigint;
  END LOOP;
  INSERT INTO {s}.estimate (queue, task, estimate) VALUES (p_queue, p_task, v_estimate)
  ON CONFLICT (queue, task) DO UPDATE SET estimate = excluded.estimate;
END $$;
