-- Gates (S43): a limit on claims at a time for all tasks behind a gate, in all queues. A strand that finds its
-- gate full waits in the gate's line and is unparked when a slot is free.
-- Parameters: `unparked` counts on to {max_unparked}; `p_only`: of this tenant alone (a peek).
-- Index: job_gate, gate_name, strand_line, strand_name, tenant_queue_name. Locks: `gate_free_slots` needs `lock_gates`;
-- `unpark_at_gates` needs the queue lock and takes `lock_gates`.

-- The free slots of a gate; NULL if it has no limit. `p_taken`: slots that the caller has given out and not written
-- yet. Whoever is about to take a slot asks here first, so no claim at the gate was started before the stored
-- `since`: the oldest one met, or now.
CREATE OR REPLACE FUNCTION {schema}.gate_free_slots(p_now bigint, p_gate text, p_taken text[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  v_limit int := (SELECT gate_limit FROM {schema}.rule_of(p_now, 'gate', p_gate));
  stored record;
  v_used int;
  v_since bigint;
BEGIN
  SELECT ctid AS tid, ver, since INTO stored FROM {schema}.gate WHERE name = p_gate ORDER BY name, ver DESC LIMIT 1;
  IF v_limit IS NULL THEN
    v_since := least(stored.since, p_now);
  ELSE
    SELECT count(*), least(min(started_at), p_now) INTO v_used, v_since FROM {schema}.job
    WHERE gate = p_gate AND started_at >= {schema}.scan_from(p_now, coalesce(stored.since, 0));
  END IF;
  IF stored.tid IS NULL THEN
    INSERT INTO {schema}.gate (name, ver, since) VALUES (p_gate, 0, CASE WHEN v_limit IS NULL THEN 0 ELSE v_since END);
  ELSIF stored.since <> v_since THEN
    UPDATE {schema}.gate SET ver = stored.ver + 1, since = v_since WHERE ctid = stored.tid;
  END IF;
  RETURN CASE WHEN v_limit IS NOT NULL THEN
    greatest(0, v_limit - v_used - (SELECT count(*) FROM unnest(p_taken) AS taken WHERE taken = p_gate)::int) END;
END $$;

-- Unpark, of the strands that wait at each gate and each breaker, as many as it has free slots for; `p_taken` and `p_passed` are
-- the slots and permits that the caller has given out and not written yet. A strand whose tenant cannot run takes no slot.
DROP FUNCTION IF EXISTS {schema}.unpark_at_gates({schema}.queue, bigint, text, int, text[]);
CREATE OR REPLACE FUNCTION {schema}.unpark_at_gates(
  INOUT q {schema}.queue, p_now bigint, p_only text, INOUT unparked int, p_taken text[], p_passed uuid[], OUT is_partial boolean,
  OUT is_any_ready boolean
) LANGUAGE plpgsql AS $$
DECLARE
  v_gate text;
  v_free_slots int;
  waiting record;
BEGIN
  is_partial := false;
  is_any_ready := false;
  LOOP
    SELECT gate INTO v_gate FROM {schema}.strand WHERE queue = q.name AND gate IS NOT NULL AND (v_gate IS NULL OR gate > v_gate)
    ORDER BY queue, gate LIMIT 1;
    EXIT WHEN v_gate IS NULL;
    PERFORM {schema}.lock_gates();
    v_free_slots := CASE WHEN v_gate LIKE 'breaker %' THEN {schema}.breaker_line_slots(p_now, v_gate, p_passed)
                         ELSE {schema}.gate_free_slots(p_now, v_gate, p_taken) END;
    CONTINUE WHEN v_free_slots = 0;
    FOR waiting IN
      SELECT tenant, task FROM {schema}.strand WHERE queue = q.name AND gate = v_gate AND (p_only IS NULL OR tenant = p_only)
      ORDER BY queue, gate, parked_vt, parked_since, task
    LOOP
      IF v_free_slots = 0 OR unparked >= {max_unparked} THEN
        is_partial := is_partial OR v_free_slots IS DISTINCT FROM 0;
        EXIT;
      END IF;
      unparked := unparked + 1;
      PERFORM {schema}.open_strand(q, waiting.tenant, waiting.task);
      q := {schema}.refresh_tenant_queue(q, waiting.tenant, false);
      IF {schema}.is_ready(q.name, waiting.tenant) THEN
        is_any_ready := true;
        v_free_slots := v_free_slots - 1;
      END IF;
    END LOOP;
  END LOOP;
END $$;
