-- Make a queue ready for a claim: due jobs, what was parked until now or by a policy that has changed, gates with room.
-- Index: job_due, turn_parked, strand_parked, strand_line, strand_name, job_gate. Locks: the caller's mutex of the queue,
-- then that of all gates and rated tasks.

-- Take the mutex that all gates and all rates of tasks share, until the end of the transaction. One for all of them: a
-- claim meets them in any order, and with one each two claims of different queues could wait for each other.
CREATE OR REPLACE FUNCTION {s}.gates_mutex() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended($s${s} gates$s$, 0));
END $$;

-- Make due delayed jobs of a queue ready, earliest first, and let turns and strands follow; say how many. Comes after a fold.
-- The look begins at `due_from`: every job that is due before is ready, or comes with a delta that is not yet folded and
-- says since when it is delayed. So it does not matter when a job is committed, nor what the clock said in between.
CREATE OR REPLACE FUNCTION {s}.promote_due(INOUT q {s}.queue, p_now bigint, p_most int, OUT promoted int)
LANGUAGE plpgsql AS $$
DECLARE
  v_tids tid[];
  v_rows {s}.delta[];
BEGIN
  v_tids := array(SELECT ctid FROM {s}.job
                  WHERE queue = q.name AND state = {delayed} AND run_at >= q.due_from AND run_at <= p_now
                  ORDER BY queue, run_at, id LIMIT p_most + 1);
  promoted := least(cardinality(v_tids), p_most);
  IF cardinality(v_tids) <= p_most THEN
    q.due_from := p_now;
  END IF;
  IF promoted > 0 THEN
    WITH due AS (
      UPDATE {s}.job SET state = {ready}, because = NULL WHERE ctid = any(v_tids[:p_most])
      RETURNING tenant, task, run_at, sort_key, id),
    ranked AS (SELECT *, row_number() OVER (ORDER BY run_at, id) AS rank FROM due),
    first AS (
      SELECT DISTINCT ON (tenant, task) *, count(*) OVER strand AS jobs, min(rank) OVER strand AS ord
      FROM ranked WINDOW strand AS (PARTITION BY tenant, task) ORDER BY tenant, task, sort_key, id)
    SELECT array_agg(row(NULL, ord, q.name, tenant, task, -jobs, jobs, sort_key, id, 0, NULL, false, NULL)::{s}.delta
                     ORDER BY ord) INTO v_rows FROM first;
    q := {s}.fold_plain(q, v_rows);
  END IF;
END $$;

-- Whether anything is parked until an instant of these. In an order that only one index has, and no sort: else one with
-- fewer pages is taken, and all that is parked looked at.
CREATE OR REPLACE FUNCTION {s}.is_any_due(p_queue text, p_from bigint, p_to bigint) RETURNS boolean LANGUAGE plpgsql STABLE
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  RETURN (SELECT parked_until FROM {s}.turn
          WHERE queue = p_queue AND state = 2 AND parked_until >= p_from AND parked_until <= p_to
          ORDER BY queue, parked_until, parked_vt, parked_since LIMIT 1) IS NOT NULL
      OR (SELECT parked_until FROM {s}.strand
          WHERE queue = p_queue AND state = 2 AND parked_until >= p_from AND parked_until <= p_to
          ORDER BY queue, parked_until, parked_vt, parked_since, task LIMIT 1) IS NOT NULL;
END $$;

-- Wake what is due, then what gates have room for. `woken` counts on to {wake_most}. Whoever parks something does so until
-- later than now; only a change of policies, which begins at 0 again, does not: so `woken_to` is behind what was woken.
CREATE OR REPLACE FUNCTION {s}.wake(
  INOUT q {s}.queue, p_now bigint, p_only text, INOUT woken int, OUT is_partial boolean, OUT is_any boolean
) LANGUAGE plpgsql AS $$
DECLARE
  v_before int := woken;
  due record;
  filled record;
BEGIN
  is_partial := false;
  IF {s}.is_any_due(q.name, q.woken_to, p_now) THEN
    FOR due IN
      SELECT * FROM (
        (SELECT tenant, NULL AS task, parked_until, parked_vt, parked_since FROM {s}.turn
         WHERE queue = q.name AND state = 2 AND parked_until >= q.woken_to AND parked_until <= p_now
         ORDER BY queue, parked_until, parked_vt, parked_since LIMIT {wake_most} - woken + 1)
        UNION ALL
        (SELECT tenant, task, parked_until, parked_vt, parked_since FROM {s}.strand
         WHERE queue = q.name AND state = 2 AND parked_until >= q.woken_to AND parked_until <= p_now
         ORDER BY queue, parked_until, parked_vt, parked_since, task LIMIT {wake_most} - woken + 1)) AS found
      ORDER BY parked_until, parked_vt, parked_since, coalesce(task, '')
    LOOP
      IF woken >= {wake_most} THEN
        is_partial := true;
        EXIT;
      END IF;
      woken := woken + 1;
      IF due.task IS NOT NULL THEN
        PERFORM {s}.open_strand(q, due.tenant, due.task);
      END IF;
      q := {s}.refresh(q, due.tenant, due.task IS NULL);
    END LOOP;
  END IF;
  IF NOT is_partial THEN
    q.woken_to := p_now;
  END IF;
  SELECT * INTO filled FROM {s}.fill_gates(q, p_now, p_only, woken, '{}');
  q := filled.q;
  woken := filled.woken;
  is_partial := is_partial OR filled.is_partial;
  is_any := woken > v_before;
END $$;

-- Let a parked strand back in.
CREATE OR REPLACE FUNCTION {s}.open_strand(q {s}.queue, p_tenant text, p_task text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_tid tid;
  v_key bigint;
BEGIN
  SELECT ctid INTO v_tid FROM {s}.strand WHERE queue = q.name AND tenant = p_tenant AND task = p_task
  ORDER BY queue, tenant, task, ver DESC LIMIT 1;
  UPDATE {s}.strand SET ver = q.ver, state = 1, parked = NULL, subject = NULL, gate = NULL, parked_until = NULL
  WHERE ctid = v_tid RETURNING head_key INTO v_key;
  SELECT ctid INTO v_tid FROM {s}.turn WHERE queue = q.name AND tenant = p_tenant
  ORDER BY queue, tenant, ver DESC LIMIT 1;
  UPDATE {s}.turn SET head_key = least(head_key, v_key) WHERE ctid = v_tid;
END $$;

-- Wake of the strands that wait at each gate as many as it has room for; `p_taken` are the places that the caller has
-- given out and not yet written. A strand whose tenant cannot run takes no place.
CREATE OR REPLACE FUNCTION {s}.fill_gates(
  INOUT q {s}.queue, p_now bigint, p_only text, INOUT woken int, p_taken text[], OUT is_partial boolean,
  OUT is_any_ready boolean
) LANGUAGE plpgsql AS $$
DECLARE
  v_gate text;
  v_room int;
  waiting record;
BEGIN
  is_partial := false;
  is_any_ready := false;
  LOOP
    SELECT gate INTO v_gate FROM {s}.strand WHERE queue = q.name AND gate IS NOT NULL AND (v_gate IS NULL OR gate > v_gate)
    ORDER BY queue, gate LIMIT 1;
    EXIT WHEN v_gate IS NULL;
    PERFORM {s}.gates_mutex();
    v_room := {s}.gate_room(p_now, v_gate, p_taken);
    CONTINUE WHEN v_room = 0;
    FOR waiting IN
      SELECT tenant, task FROM {s}.strand WHERE queue = q.name AND gate = v_gate AND (p_only IS NULL OR tenant = p_only)
      ORDER BY queue, gate, parked_vt, parked_since, task
    LOOP
      IF v_room = 0 OR woken >= {wake_most} THEN
        is_partial := is_partial OR v_room IS DISTINCT FROM 0;
        EXIT;
      END IF;
      woken := woken + 1;
      PERFORM {s}.open_strand(q, waiting.tenant, waiting.task);
      q := {s}.refresh(q, waiting.tenant, false);
      IF {s}.is_ready(q.name, waiting.tenant) THEN
        is_any_ready := true;
        v_room := v_room - 1;
      END IF;
    END LOOP;
  END LOOP;
END $$;

-- Whether a tenant is in the ready index.
CREATE OR REPLACE FUNCTION {s}.is_ready(p_queue text, p_tenant text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT state = 1 FROM {s}.turn WHERE queue = p_queue AND tenant = p_tenant
          ORDER BY queue, tenant, ver DESC LIMIT 1);
END $$;

-- The free places of a gate; NULL if it has no limit. Needs the gates' mutex. Whoever is about to take a place asks here
-- first, so that no claim at the gate was started before its `since`: the oldest that was met, or now.
CREATE OR REPLACE FUNCTION {s}.gate_room(p_now bigint, p_gate text, p_taken text[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_most int := (SELECT most FROM {s}.term_of(p_now, 'gate', p_gate));
  kept record;
  v_held int;
  v_since bigint;
BEGIN
  SELECT ctid AS tid, ver, since INTO kept FROM {s}.gate WHERE name = p_gate ORDER BY name, ver DESC LIMIT 1;
  IF v_most IS NULL THEN
    v_since := least(kept.since, p_now);
  ELSE
    SELECT count(*), least(min(started_at), p_now) INTO v_held, v_since FROM {s}.job
    WHERE gate = p_gate AND started_at >= {s}.from_of(p_now, coalesce(kept.since, 0));
  END IF;
  IF kept.tid IS NULL THEN
    INSERT INTO {s}.gate (name, ver, since) VALUES (p_gate, 0, CASE WHEN v_most IS NULL THEN 0 ELSE v_since END);
  ELSIF kept.since <> v_since THEN
    UPDATE {s}.gate SET ver = kept.ver + 1, since = v_since WHERE ctid = kept.tid;
  END IF;
  RETURN CASE WHEN v_most IS NOT NULL THEN
    greatest(0, v_most - v_held - (SELECT count(*) FROM unnest(p_taken) AS taken WHERE taken = p_gate)::int) END;
END $$;
