-- Virtual time (S41), as `model.scheduling.fairness` computes it. Each tenant has a clock `vt` in each queue; a job advances it
-- by stride × cost, so that a tenant of twice the weight, with half the stride, gets twice the share.
-- Parameters: `p_cost` in microseconds. Index: the primary key of effective_rule. Locks: none.

-- What a cost is in virtual time: halves are rounded up, nothing is free.
CREATE OR REPLACE FUNCTION {schema}.charge(p_stride bigint, p_cost bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT greatest(1, div(p_stride::numeric * p_cost + 500000, 1000000)::bigint)
$$;

-- What one second of a tenant's work costs: its own stride, or that of all tenants without one, or that of weight 1.
CREATE OR REPLACE FUNCTION {schema}.stride_of(p_now bigint, p_tenant text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE v_now bigint := {schema}.now_or(p_now);
BEGIN
  RETURN coalesce(
    (SELECT t.stride FROM {schema}.effective_rule t WHERE t.kind = 'tenant' AND t.name = p_tenant AND t.queue = ''
       AND t.since <= v_now AND v_now < t.until),
    (SELECT t.stride FROM {schema}.effective_rule t WHERE t.kind = 'tenant' AND t.name = '*' AND t.queue = ''
       AND t.since <= v_now AND v_now < t.until),
    1048576);
END $$;
