-- The store's clock (S1). Parameters: `p_now` is NULL except in tests. Index, locks: none.

-- Microseconds since 1970, or what a test says it is.
CREATE OR REPLACE FUNCTION {schema}.now_or(p_now bigint) RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;
