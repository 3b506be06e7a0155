-- Claims whose lease has ended by `p_at`, oldest first (S38). Looks no deeper than `p_floor`, or 5 s before that if it
-- is earlier: behind it stand dead entries that an old snapshot keeps. Index: job_lease. Locks: the rows, SKIP LOCKED.
CREATE OR REPLACE FUNCTION {s}.lapsed(p_at bigint, p_floor bigint, p_most int) RETURNS SETOF {s}.job LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN QUERY SELECT * FROM {s}.job
  WHERE state = {running} AND lease_until <= p_at AND lease_until >= least(p_floor, p_at - 5000000)
  ORDER BY lease_until, id LIMIT p_most FOR UPDATE SKIP LOCKED;
END $$;

-- What time it is, what `lapsed` must be asked for, whether there is any, and how long the look took, by the server's own
-- clock.
CREATE OR REPLACE FUNCTION {s}.is_any_lapsed(
  p_now bigint, p_floor bigint, p_by bigint, OUT at bigint, OUT lapsed_by bigint, OUT is_any boolean,
  OUT took bigint)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
  v_began bigint := {s}.now_or(NULL);
BEGIN
  at := {s}.now_or(p_now);
  lapsed_by := least(at, p_by);
  PERFORM 1 FROM {s}.job
  WHERE state = {running} AND lease_until <= lapsed_by AND lease_until >= least(p_floor, lapsed_by - 5000000)
  ORDER BY lease_until, id LIMIT 1;
  is_any := FOUND;
  took := {s}.now_or(NULL) - v_began;
END $$;

-- Whether there is a claim whose lease ends after `p_at`. The newest come first: where anything runs, hardly any dead entry
-- is met. Index: job_lease. Locks: none.
CREATE OR REPLACE FUNCTION {s}.is_any_held(p_at bigint) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  PERFORM 1 FROM {s}.job WHERE state = {running} AND lease_until > p_at ORDER BY lease_until DESC, id DESC LIMIT 1;
  RETURN FOUND;
END $$;

-- What time it is, and waiting jobs whose expiry has passed, earliest first, with their queues (S21); no deeper than
-- `lapsed` looks. `took` is how long the look took, by the server's own clock. Index: job_expiry. Locks: none.
CREATE OR REPLACE FUNCTION {s}.expired(p_now bigint, p_floor bigint, p_most int, OUT at bigint, OUT ids uuid[],
  OUT queues text[], OUT took bigint)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
  v_began bigint := {s}.now_or(NULL);
BEGIN
  at := {s}.now_or(p_now);
  SELECT array_agg(id), array_agg(queue) INTO ids, queues FROM (
    SELECT id, queue FROM {s}.job
    WHERE expires_at <= at AND expires_at >= least(p_floor, at - 5000000) AND worker IS NULL
    ORDER BY expires_at, id LIMIT p_most) AS found;
  took := {s}.now_or(NULL) - v_began;
END $$;
