-- Reclaim (S38): find claims whose lease has ended.
-- Parameters: `p_scan_from` is where the last pass ended, 0 for everything. The scan starts there, or 5 s before
-- `p_at` if that is earlier: lower in the index are dead entries that an old snapshot keeps.
-- Index: job_lease. Locks: `lapsed_claims` takes the rows, SKIP LOCKED; the others none.

-- Claims whose lease has ended by `p_at`, oldest first.
CREATE OR REPLACE FUNCTION {schema}.lapsed_claims(p_at bigint, p_scan_from bigint, p_limit int) RETURNS SETOF {schema}.job
  LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN QUERY SELECT * FROM {schema}.job
  WHERE state = {running} AND lease_until <= p_at AND lease_until >= least(p_scan_from, p_at - 5000000)
  ORDER BY lease_until, id LIMIT p_limit FOR UPDATE SKIP LOCKED;
END $$;

-- Whether there is any; also the time, the instant that `lapsed_claims` must be asked for, and how long the scan took
-- by the server's own clock.
CREATE OR REPLACE FUNCTION {schema}.is_any_lapsed(
  p_now bigint, p_scan_from bigint, p_by bigint, OUT at bigint, OUT lapsed_by bigint, OUT is_any boolean,
  OUT took bigint)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
  v_began bigint := {schema}.now_or(NULL);
BEGIN
  at := {schema}.now_or(p_now);
  lapsed_by := least(at, p_by);
  PERFORM 1 FROM {schema}.job
  WHERE state = {running} AND lease_until <= lapsed_by AND lease_until >= least(p_scan_from, lapsed_by - 5000000)
  ORDER BY lease_until, id LIMIT 1;
  is_any := FOUND;
  took := {schema}.now_or(NULL) - v_began;
END $$;

-- Whether there is a claim whose lease ends after `p_at`. The newest come first: where anything runs, hardly any dead
-- entry is met.
CREATE OR REPLACE FUNCTION {schema}.is_any_live_claim(p_at bigint) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  PERFORM 1 FROM {schema}.job WHERE state = {running} AND lease_until > p_at ORDER BY lease_until DESC, id DESC LIMIT 1;
  RETURN FOUND;
END $$;
