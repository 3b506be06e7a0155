-- Apply policy changes to a queue (S54): whatever a changed subject may hold back is due to be unparked at the
-- instant of the change, and the calling claim or pass unparks it, a bounded number each. What is parked by an old rule
-- while the rule changes is covered: the change is newer than the last one that the queue has applied.
-- Parameters: `q` is the queue's row, which the caller writes back.
-- Index: the primary keys of policy_change and applied_policy_change, tenant_queue_name, tenant_queue_parked,
-- strand_task, strand_parked, strand_budget. Locks: the caller's queue lock.

-- Apply the changes since the queue last did. A change counts from its own time on, so the scan of what is parked starts
-- at 0 again.
CREATE OR REPLACE FUNCTION {schema}.apply_policy_changes(INOUT q {schema}.queue) LANGUAGE plpgsql AS $$
DECLARE
  v_last bigint;
  v_done bigint;
BEGIN
  SELECT id INTO v_last FROM {schema}.policy_change ORDER BY id DESC LIMIT 1;
  IF v_last IS NULL THEN
    RETURN;
  END IF;
  SELECT change_id INTO v_done FROM {schema}.applied_policy_change WHERE queue = q.name;
  IF v_done IS NULL OR v_done < v_last THEN
    PERFORM {schema}.apply_policy_changes_until(q.name, coalesce(v_done, 0), v_last);
    q.unparked_to := 0;
  END IF;
END $$;

-- The changes after `p_done` and up to `p_last`, in their order. One that concerns more than 2,000 is applied in
-- parts, first those that are unparked first: the queue lock is not held for seconds.
CREATE OR REPLACE FUNCTION {schema}.apply_policy_changes_until(p_queue text, p_done bigint, p_last bigint) RETURNS void
  LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  v_change {schema}.policy_change;
  v_done bigint := p_done;
BEGIN
  IF EXISTS (SELECT 1 FROM {schema}.tenant_queue WHERE queue = p_queue AND state = {parked})
     OR EXISTS (SELECT 1 FROM {schema}.strand WHERE queue = p_queue AND state = {parked}) THEN
    FOR v_change IN SELECT * FROM {schema}.policy_change WHERE id > p_done AND id <= p_last ORDER BY id LOOP
      EXIT WHEN {schema}.apply_policy_change(p_queue, v_change) >= 2000;
      v_done := v_change.id;
    END LOOP;
  ELSE
    v_done := p_last;
  END IF;
  INSERT INTO {schema}.applied_policy_change (queue, change_id) VALUES (p_queue, v_done)
  ON CONFLICT (queue) DO UPDATE SET change_id = excluded.change_id;
END $$;

-- One change; return how many got a new time. Of a queue, a tenant or everyone: the parked tenants. Of a task: its
-- strands. Of a budget: the strands that wait for its room. Of a gate: those that its rate holds; who waits for a slot, or at a breaker, stays in line.
CREATE OR REPLACE FUNCTION {schema}.apply_policy_change(p_queue text, p_change {schema}.policy_change) RETURNS int
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off AS $$
DECLARE
  v_found tid[];
BEGIN
  IF p_change.kind = 'tenant' AND p_change.name <> '*' THEN
    v_found := ARRAY(
      SELECT ctid FROM {schema}.tenant_queue WHERE queue = p_queue AND tenant = p_change.name AND state = {parked}
        AND (parked_until IS NULL OR parked_until > p_change.at));
  ELSIF p_change.kind IN ('tenant', 'queue') THEN
    IF p_change.kind = 'tenant' OR p_change.name = p_queue THEN
      v_found := ARRAY(
        SELECT ctid FROM {schema}.tenant_queue WHERE queue = p_queue AND state = {parked}
          AND (parked_until IS NULL OR parked_until > p_change.at)
        ORDER BY parked_vt, parked_since LIMIT 2000);
    END IF;
  ELSIF p_change.kind = 'task' THEN
    v_found := ARRAY(
      SELECT ctid FROM {schema}.strand WHERE task = p_change.name AND queue = p_queue AND state = {parked}
        AND (parked_until IS NULL OR parked_until > p_change.at)
      ORDER BY parked_vt, parked_since LIMIT 2000);
  ELSIF p_change.kind = 'budget' THEN
    v_found := ARRAY(
      SELECT ctid FROM {schema}.strand WHERE queue = p_queue AND state = {parked}
        AND parked = 'budget' AND subject = 'budget ' || p_change.name
        AND (parked_until IS NULL OR parked_until > p_change.at)
      ORDER BY parked_vt, parked_since, task LIMIT 2000);
  ELSE
    v_found := ARRAY(
      SELECT ctid FROM {schema}.strand WHERE queue = p_queue AND state = {parked}
        AND parked = 'rate' AND subject = p_change.kind || ' ' || p_change.name
        AND (parked_until IS NULL OR parked_until > p_change.at)
      ORDER BY parked_vt, parked_since, task LIMIT 2000);
  END IF;
  IF p_change.kind IN ('tenant', 'queue') THEN
    UPDATE {schema}.tenant_queue SET parked_until = p_change.at, ver = ver + 1 WHERE ctid = ANY (v_found);
  ELSE
    UPDATE {schema}.strand SET parked_until = p_change.at, ver = ver + 1 WHERE ctid = ANY (v_found);
  END IF;
  RETURN coalesce(cardinality(v_found), 0);
END $$;
