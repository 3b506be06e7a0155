-- Heed the changes of policies since the queue last did (S54): what a subject may have held gets the time of the
-- change as its time to wake, and the claim or pass that called wakes it, a bounded number each. Who parked something
-- by a rule that was changed meanwhile is covered too: the change is newer than what the queue has heeded.
--
-- A change counts from its own time on, so that the look for what is to be woken begins anew. Index: the primary keys of
-- mark and marked, turn_name, turn_parked, strand_task, strand_parked. Locks: needs the queue's mutex.
CREATE OR REPLACE FUNCTION {s}.heed_changes(INOUT q {s}.queue) LANGUAGE plpgsql AS $$
DECLARE
  v_last bigint;
  v_done bigint;
BEGIN
  SELECT id INTO v_last FROM {s}.mark ORDER BY id DESC LIMIT 1;
  IF v_last IS NULL THEN
    RETURN;
  END IF;
  SELECT mark INTO v_done FROM {s}.marked WHERE queue = q.name;
  IF v_done IS NULL OR v_done < v_last THEN
    PERFORM {s}.heed_marks(q.name, coalesce(v_done, 0), v_last);
    q.woken_to := 0;
  END IF;
END $$;

-- The changes after p_done and up to p_last, in their order. A change that concerns more than 2,000 is heeded in
-- parts, whose wake-ups come first in the order of waking: the queue's mutex is not held for seconds.
CREATE OR REPLACE FUNCTION {s}.heed_marks(p_queue text, p_done bigint, p_last bigint) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  v_mark {s}.mark;
  v_done bigint := p_done;
BEGIN
  IF EXISTS (SELECT 1 FROM {s}.turn WHERE queue = p_queue AND state = 2)
     OR EXISTS (SELECT 1 FROM {s}.strand WHERE queue = p_queue AND state = 2) THEN
    FOR v_mark IN SELECT * FROM {s}.mark WHERE id > p_done AND id <= p_last ORDER BY id LOOP
      EXIT WHEN {s}.heed_mark(p_queue, v_mark) >= 2000;
      v_done := v_mark.id;
    END LOOP;
  ELSE
    v_done := p_last;
  END IF;
  INSERT INTO {s}.marked (queue, mark) VALUES (p_queue, v_done)
  ON CONFLICT (queue) DO UPDATE SET mark = excluded.mark;
END $$;

-- One change; answers how many got a new time. Of a queue, a tenant and everyone: the tenants that are parked. Of a
-- task: its strands. Of a gate: the strands that its rate holds; who waits at it stays in line.
CREATE OR REPLACE FUNCTION {s}.heed_mark(p_queue text, p_mark {s}.mark) RETURNS int LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
  v_found tid[];
BEGIN
  IF p_mark.kind = 'tenant' AND p_mark.name <> '*' THEN
    v_found := ARRAY(
      SELECT ctid FROM {s}.turn WHERE queue = p_queue AND tenant = p_mark.name AND state = 2
        AND (parked_until IS NULL OR parked_until > p_mark.at));
  ELSIF p_mark.kind IN ('tenant', 'queue') THEN
    IF p_mark.kind = 'tenant' OR p_mark.name = p_queue THEN
      v_found := ARRAY(
        SELECT ctid FROM {s}.turn WHERE queue = p_queue AND state = 2
          AND (parked_until IS NULL OR parked_until > p_mark.at)
        ORDER BY parked_vt, parked_since LIMIT 2000);
    END IF;
  ELSIF p_mark.kind = 'task' THEN
    v_found := ARRAY(
      SELECT ctid FROM {s}.strand WHERE task = p_mark.name AND queue = p_queue AND state = 2
        AND (parked_until IS NULL OR parked_until > p_mark.at)
      ORDER BY parked_vt, parked_since LIMIT 2000);
  ELSE
    v_found := ARRAY(
      SELECT ctid FROM {s}.strand WHERE queue = p_queue AND state = 2
        AND parked = 'rate' AND subject = 'gate ' || p_mark.name
        AND (parked_until IS NULL OR parked_until > p_mark.at)
      ORDER BY parked_vt, parked_since, task LIMIT 2000);
  END IF;
  IF p_mark.kind IN ('tenant', 'queue') THEN
    UPDATE {s}.turn SET parked_until = p_mark.at, ver = ver + 1 WHERE ctid = ANY (v_found);
  ELSE
    UPDATE {s}.strand SET parked_until = p_mark.at, ver = ver + 1 WHERE ctid = ANY (v_found);
  END IF;
  RETURN coalesce(cardinality(v_found), 0);
END $$;
