-- Rates of queues, tasks and gates (S44), as `model.limits.Rate` computes them; a tenant's is kept in its turn.
-- Index: pace_name. Locks: the mutex of the queue, or for tasks and gates that of the gates.

-- When a rate allows its next start; NULL if now. `p_ends` is when an override ends and another rate may be in force.
CREATE OR REPLACE FUNCTION {s}.rate_block(p_now bigint, p_rate {s}.term, p_arrival bigint, p_pace text, p_ends bigint)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_free_at bigint := CASE WHEN p_pace = p_rate.pace THEN p_arrival ELSE 0 END
                      - (p_rate.rate_burst - 1) * p_rate.rate_every;
BEGIN
  RETURN CASE WHEN v_free_at > p_now THEN least(v_free_at, p_ends) END;
END $$;

-- The same for what is kept in `pace`.
CREATE OR REPLACE FUNCTION {s}.pace_block(p_now bigint, p_rate {s}.term) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE kept {s}.pace;
BEGIN
  SELECT * INTO kept FROM {s}.pace WHERE kind = p_rate.kind AND name = p_rate.name ORDER BY kind, name, ver DESC LIMIT 1;
  RETURN {s}.rate_block(p_now, p_rate, coalesce(kept.arrival, 0), coalesce(kept.pace, ''),
                        nullif(p_rate.until, 9223372036854775807));
END $$;

-- The theoretical arrival after a start now.
CREATE OR REPLACE FUNCTION {s}.rate_start(p_now bigint, p_rate {s}.term, p_arrival bigint, p_pace text)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN greatest(p_now, CASE WHEN p_pace = p_rate.pace THEN p_arrival END) + p_rate.rate_every;
END $$;

-- Count a start against what is kept in `pace`.
CREATE OR REPLACE FUNCTION {s}.pace_start(p_now bigint, p_rate {s}.term) RETURNS void LANGUAGE plpgsql AS $$
DECLARE kept record;
BEGIN
  SELECT ctid AS tid, ver, arrival, pace INTO kept FROM {s}.pace WHERE kind = p_rate.kind AND name = p_rate.name
  ORDER BY kind, name, ver DESC LIMIT 1;
  IF found THEN
    UPDATE {s}.pace SET ver = kept.ver + 1, arrival = {s}.rate_start(p_now, p_rate, kept.arrival, kept.pace),
                        pace = p_rate.pace
    WHERE ctid = kept.tid;
  ELSE
    INSERT INTO {s}.pace (kind, name, arrival, pace)
    VALUES (p_rate.kind, p_rate.name, p_now + p_rate.rate_every, p_rate.pace);
  END IF;
END $$;

-- What holds a whole queue: a pause, or its rate. `until` may be NULL.
CREATE OR REPLACE FUNCTION {s}.queue_block(p_now bigint, p_queue text, OUT is_blocked boolean, OUT until bigint)
LANGUAGE plpgsql AS $$
DECLARE rules {s}.term;
BEGIN
  is_blocked := false;
  SELECT nullif(h.until, 9223372036854775807) INTO until FROM {s}.hold_of(p_now, 'paused', 'queue', p_queue) h;
  IF found THEN
    is_blocked := true;
    RETURN;
  END IF;
  SELECT * INTO rules FROM {s}.term_of(p_now, 'queue', p_queue);
  IF rules.rate_every IS NOT NULL THEN
    until := {s}.pace_block(p_now, rules);
    is_blocked := until IS NOT NULL;
  END IF;
END $$;
