-- Pauses and closes (S46): what holds a subject back by hand. A pause stops claims, a close stops enqueues. Whether a tenant
-- or a task may run is asked in claims/blocks.sql.
-- Parameters: `p_verb`: paused or closed. Index: primary keys of hold and effective_rule, rate_state_name. Locks: none.

-- A pause or close that still holds.
CREATE OR REPLACE FUNCTION {schema}.hold_of(p_now bigint, p_verb text, p_kind text, p_name text)
RETURNS SETOF {schema}.hold LANGUAGE sql STABLE AS $$
  SELECT * FROM {schema}.hold WHERE kind = p_kind AND name = p_name AND verb = p_verb AND until > p_now
$$;

-- What holds a whole queue back: a pause, or its rate. `until` may be NULL.
CREATE OR REPLACE FUNCTION {schema}.queue_block(p_now bigint, p_queue text, OUT is_blocked boolean, OUT until bigint)
LANGUAGE plpgsql AS $$
DECLARE rules {schema}.effective_rule;
BEGIN
  is_blocked := false;
  SELECT nullif(h.until, {forever}) INTO until FROM {schema}.hold_of(p_now, 'paused', 'queue', p_queue) h;
  IF found THEN
    is_blocked := true;
    RETURN;
  END IF;
  SELECT * INTO rules FROM {schema}.rule_of(p_now, 'queue', p_queue);
  IF rules.rate_every IS NOT NULL THEN
    until := {schema}.stored_rate_block(p_now, rules);
    is_blocked := until IS NOT NULL;
  END IF;
END $$;
