-- Look up the rules in force at an instant: the rows that policies/effective_rules.py works out.
-- Parameters: `p_kind`: tenant, queue, task or gate. Index: the primary key of effective_rule. Locks: none.

-- What is in force for a queue, task or gate; with the name of a queue or '*', the limits that a tenant or queue
-- gives.
CREATE OR REPLACE FUNCTION {schema}.rule_of(p_now bigint, p_kind text, p_name text, p_queue text DEFAULT '')
RETURNS SETOF {schema}.effective_rule LANGUAGE sql STABLE AS $$
  SELECT * FROM {schema}.effective_rule
  WHERE kind = p_kind AND name = p_name AND queue = p_queue AND since <= p_now AND until > p_now
  ORDER BY kind, name, queue, since DESC LIMIT 1
$$;

-- The limits of a tenant in a queue: the most specific that are given, as a whole; no row: none. Do not use its
-- `until`: see `limits_end`.
CREATE OR REPLACE FUNCTION {schema}.limits_of(p_now bigint, p_queue text, p_tenant text)
RETURNS SETOF {schema}.effective_rule LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY SELECT * FROM {schema}.rule_of(p_now, 'tenant', p_tenant, p_queue);
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM {schema}.rule_of(p_now, 'tenant', p_tenant, '*');
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM {schema}.rule_of(p_now, 'tenant', '*', p_queue);
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM {schema}.rule_of(p_now, 'tenant', '*', '*');
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY SELECT * FROM {schema}.rule_of(p_now, 'queue', p_queue, '*');
END $$;

-- When the first override that bears on a tenant's limits in a queue ends by itself; NULL: never.
CREATE OR REPLACE FUNCTION {schema}.limits_end(p_now bigint, p_queue text, p_tenant text)
RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT nullif(least(
    (SELECT until FROM {schema}.rule_of(p_now, 'tenant', p_tenant)),
    (SELECT until FROM {schema}.rule_of(p_now, 'tenant', '*')),
    (SELECT until FROM {schema}.rule_of(p_now, 'queue', p_queue))), {forever})
$$;
