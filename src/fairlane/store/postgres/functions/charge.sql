-- What a cost is in virtual time (S41), as `model.fairness` computes it: halves go up, nothing is free.
CREATE OR REPLACE FUNCTION {s}.charge(p_stride bigint, p_cost bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT greatest(1, div(p_stride::numeric * p_cost + 500000, 1000000)::bigint)
$$;

-- What one second of a tenant's work costs: its own stride, or that of all who have none, or that of weight 1.
-- Index: the key of `term`.
CREATE OR REPLACE FUNCTION {s}.stride_of(p_now bigint, p_tenant text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE v_now bigint := {s}.now_or(p_now);
BEGIN
  RETURN coalesce(
    (SELECT t.stride FROM {s}.term t WHERE t.kind = 'tenant' AND t.name = p_tenant AND t.queue = ''
       AND t.since <= v_now AND v_now < t.until),
    (SELECT t.stride FROM {s}.term t WHERE t.kind = 'tenant' AND t.name = '*' AND t.queue = ''
       AND t.since <= v_now AND v_now < t.until),
    1048576);
END $$;
