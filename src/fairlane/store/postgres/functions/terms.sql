-- Look up what is in force: the rows that `terms.py` worked out, at one instant. All but the first take an instant that
-- is known, and all read only. Index: the primary keys of term and hold. Locks: none.

-- What holds for a queue, task or gate, or with the name of a queue or '*' the limits that a tenant or queue gives.
CREATE OR REPLACE FUNCTION {s}.term_of(p_now bigint, p_kind text, p_name text, p_queue text DEFAULT '')
RETURNS SETOF {s}.term LANGUAGE sql STABLE AS $$
  SELECT * FROM {s}.term
  WHERE kind = p_kind AND name = p_name AND queue = p_queue AND since <= p_now AND until > p_now
  ORDER BY kind, name, queue, since DESC LIMIT 1
$$;

-- The limits of a tenant in a queue, the most specific that are given, as a whole; no row: none. `until` is not to be
-- used: see `limits_end`.
CREATE OR REPLACE FUNCTION {s}.limits_of(p_now bigint, p_queue text, p_tenant text)
RETURNS SETOF {s}.term LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY SELECT * FROM {s}.term_of(p_now, 'tenant', p_tenant, p_queue);
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM {s}.term_of(p_now, 'tenant', p_tenant, '*');
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM {s}.term_of(p_now, 'tenant', '*', p_queue);
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM {s}.term_of(p_now, 'tenant', '*', '*');
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM {s}.term_of(p_now, 'queue', p_queue, '*');
END $$;

-- When the first override that has a say in a tenant's limits in a queue ends by itself; null: never.
CREATE OR REPLACE FUNCTION {s}.limits_end(p_now bigint, p_queue text, p_tenant text)
RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT nullif(least(
    (SELECT until FROM {s}.term_of(p_now, 'tenant', p_tenant)),
    (SELECT until FROM {s}.term_of(p_now, 'tenant', '*')),
    (SELECT until FROM {s}.term_of(p_now, 'queue', p_queue))), 9223372036854775807)
$$;

-- A pause or close that still holds.
CREATE OR REPLACE FUNCTION {s}.hold_of(p_now bigint, p_verb text, p_kind text, p_name text)
RETURNS SETOF {s}.hold LANGUAGE sql STABLE AS $$
  SELECT * FROM {s}.hold WHERE kind = p_kind AND name = p_name AND verb = p_verb AND until > p_now
$$;
