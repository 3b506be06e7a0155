-- Unpark tenants and strands whose time has come or whose policy has changed, and strands in the
-- line of a gate that has free slots.
-- Parameters: `q` is the queue's row, which the caller writes back; `p_only`: gates let in strands of this tenant alone (a
-- peek).
-- Index: tenant_queue_parked, tenant_queue_name, strand_parked, strand_line, strand_name. Locks: the caller's queue lock, then
-- `lock_gates` where strands wait at a gate.

-- Unpark what is due, then what gates have free slots for. `unparked` counts on to {max_unparked}. Whatever is parked is
-- parked until later than now, so `unparked_to` may move to now once all that is due is unparked; a policy change resets it
-- to 0.
CREATE OR REPLACE FUNCTION {schema}.unpark(
  INOUT q {schema}.queue, p_now bigint, p_only text, INOUT unparked int, OUT is_partial boolean, OUT is_any boolean
) LANGUAGE plpgsql AS $$
DECLARE
  v_before int := unparked;
  due record;
  filled record;
BEGIN
  is_partial := false;
  IF {schema}.is_any_unpark_due(q.name, q.unparked_to, p_now) THEN
    FOR due IN
      SELECT * FROM (
        (SELECT tenant, NULL AS task, parked_until, parked_vt, parked_since FROM {schema}.tenant_queue
         WHERE queue = q.name AND state = {parked} AND parked_until >= q.unparked_to AND parked_until <= p_now
         ORDER BY queue, parked_until, parked_vt, parked_since LIMIT {max_unparked} - unparked + 1)
        UNION ALL
        (SELECT tenant, task, parked_until, parked_vt, parked_since FROM {schema}.strand
         WHERE queue = q.name AND state = {parked} AND parked_until >= q.unparked_to AND parked_until <= p_now
         ORDER BY queue, parked_until, parked_vt, parked_since, task LIMIT {max_unparked} - unparked + 1)) AS found
      ORDER BY parked_until, parked_vt, parked_since, coalesce(task, '')
    LOOP
      IF unparked >= {max_unparked} THEN
        is_partial := true;
        EXIT;
      END IF;
      unparked := unparked + 1;
      IF due.task IS NOT NULL THEN
        PERFORM {schema}.open_strand(q, due.tenant, due.task);
      END IF;
      q := {schema}.refresh_tenant_queue(q, due.tenant, due.task IS NULL);
    END LOOP;
  END IF;
  IF NOT is_partial THEN
    q.unparked_to := p_now;
  END IF;
  SELECT * INTO filled FROM {schema}.unpark_at_gates(q, p_now, p_only, unparked, '{}', '{}');
  q := filled.q;
  unparked := filled.unparked;
  is_partial := is_partial OR filled.is_partial;
  is_any := unparked > v_before;
END $$;

-- Whether anything is parked until an instant between these. In an order that only one index has, and without a sort:
-- else an index with fewer pages is taken, and all that is parked is read.
CREATE OR REPLACE FUNCTION {schema}.is_any_unpark_due(p_queue text, p_from bigint, p_to bigint) RETURNS boolean
  LANGUAGE plpgsql STABLE
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  RETURN (SELECT parked_until FROM {schema}.tenant_queue
          WHERE queue = p_queue AND state = {parked} AND parked_until >= p_from AND parked_until <= p_to
          ORDER BY queue, parked_until, parked_vt, parked_since LIMIT 1) IS NOT NULL
      OR (SELECT parked_until FROM {schema}.strand
          WHERE queue = p_queue AND state = {parked} AND parked_until >= p_from AND parked_until <= p_to
          ORDER BY queue, parked_until, parked_vt, parked_since, task LIMIT 1) IS NOT NULL;
END $$;

-- Let a parked strand back in.
CREATE OR REPLACE FUNCTION {schema}.open_strand(q {schema}.queue, p_tenant text, p_task text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_tid tid;
  v_key bigint;
BEGIN
  SELECT ctid INTO v_tid FROM {schema}.strand WHERE queue = q.name AND tenant = p_tenant AND task = p_task
  ORDER BY queue, tenant, task, ver DESC LIMIT 1;
  UPDATE {schema}.strand SET ver = q.ver, state = {open}, parked = NULL, subject = NULL, gate = NULL, parked_until = NULL
  WHERE ctid = v_tid RETURNING head_key INTO v_key;
  SELECT ctid INTO v_tid FROM {schema}.tenant_queue WHERE queue = q.name AND tenant = p_tenant
  ORDER BY queue, tenant, ver DESC LIMIT 1;
  UPDATE {schema}.tenant_queue SET head_key = least(head_key, v_key) WHERE ctid = v_tid;
END $$;

-- Whether a tenant is in the fair order.
CREATE OR REPLACE FUNCTION {schema}.is_ready(p_queue text, p_tenant text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT state = {open} FROM {schema}.tenant_queue WHERE queue = p_queue AND tenant = p_tenant
          ORDER BY queue, tenant, ver DESC LIMIT 1);
END $$;
