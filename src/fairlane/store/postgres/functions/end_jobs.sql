-- What ends: jobs leave the hot home, claims are given back, and all that follows is written in the same step.
-- The caller has locked the rows of running jobs, or holds the mutex of the queues of waiting ones; `p_tid` says where
-- they are. `p_tail` is the end of the attempt's record (from its outcome on), NULL where no attempt ended; counters
-- that are NULL stay. Index: none but the primary keys of the two tables of keys. Locks: no new ones.

-- Deltas for what is no longer waiting, waits again, or frees a place; before the rows change.
CREATE OR REPLACE FUNCTION {s}.note_ends(p_now bigint, p_tid tid[], p_state text[], p_learns boolean[])
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  WITH e AS MATERIALIZED (
    SELECT u.ord, u.next, u.learns, j.id, j.queue, j.tenant, j.task, j.state, j.sort_key, j.charged, j.started_at,
           j.is_capped, CASE WHEN j.charged IS NOT NULL THEN {s}.stride_of(p_now, j.tenant) END AS stride
    FROM unnest(p_tid, p_state, p_learns) WITH ORDINALITY u (tid, next, learns, ord)
    JOIN {s}.job j ON j.ctid = u.tid OFFSET 0)
  INSERT INTO {s}.delta (ord, queue, tenant, task, delayed, ready, head_key, head_id, vt, took, is_freed, delayed_at)
  -- Those that waited and will not wait again only count: a purge of a thousand is one row for each strand.
  SELECT min(e.ord), e.queue, e.tenant, e.task, -count(*) FILTER (WHERE e.state = {delayed}),
         -count(*) FILTER (WHERE e.state = {ready}), NULL, NULL, 0, NULL, false, NULL
  FROM e WHERE e.state <> {running} AND e.next NOT IN ({delayed}, {ready})
  GROUP BY e.queue, e.tenant, e.task
  UNION ALL
  SELECT e.ord, e.queue, e.tenant, e.task,
         (e.next = {delayed})::int - (e.state = {delayed})::int,
         (e.next = {ready})::int - (e.state = {ready})::int,
         CASE WHEN e.next = {ready} THEN e.sort_key END,
         CASE WHEN e.next = {ready} THEN e.id END,
         CASE WHEN e.charged IS NULL THEN 0
              ELSE {s}.charge(e.stride, p_now - coalesce(e.started_at, p_now)) - {s}.charge(e.stride, e.charged) END,
         CASE WHEN e.charged IS NOT NULL AND e.learns THEN p_now - coalesce(e.started_at, p_now) END,
         e.is_capped, CASE WHEN e.next = {delayed} THEN p_now END
  FROM e
  WHERE (e.state = {running} OR e.next IN ({delayed}, {ready}))
    AND (e.state <> {running} OR e.next IN ({delayed}, {ready}) OR e.charged IS NOT NULL OR e.is_capped);
END $$;

-- The record of an attempt that ends now, after those before; only the last ones are kept. Stable, as `to_json` is: of
-- an immutable function the body would not be written into the statement, which costs a call for each row.
CREATE OR REPLACE FUNCTION {s}.with_attempt(p_now bigint, p_before text[], p_number int, p_worker text, p_started bigint,
  p_tail text)
RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN p_tail IS NULL THEN p_before ELSE
    p_before[greatest(coalesce(cardinality(p_before), 0) - {attempts_kept} + 2, 1):]
    || ('{"number":' || p_number || ',"worker":' || to_json(p_worker)::text || ',"started_at":'
        || coalesce(p_started, p_now) || ',"ended_at":' || p_now || ',' || p_tail) END
$$;

-- Running jobs that wait again.
CREATE OR REPLACE FUNCTION {s}.put_back(p_now bigint, p_tid tid[], p_state text[], p_because text[], p_delay bigint[],
  p_failures int[], p_crashes int[], p_crashes_alone int[], p_snoozes int[], p_suspect boolean[], p_tail text[])
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  UPDATE {s}.job j
  SET state = u.state, because = u.because,
      run_at = CASE WHEN u.state = {delayed} THEN p_now + u.delay ELSE j.run_at END,
      sort_key = CASE WHEN u.state = {delayed} THEN p_now + u.delay - j.priority * {priority_step} ELSE j.sort_key END,
      failures = coalesce(u.failures, j.failures), crashes = coalesce(u.crashes, j.crashes),
      crashes_alone = coalesce(u.crashes_alone, j.crashes_alone), snoozes = coalesce(u.snoozes, j.snoozes),
      is_suspect = u.suspect,
      attempts = {s}.with_attempt(p_now, j.attempts, j.attempt, j.worker, j.started_at, u.tail),
      worker = NULL, started_at = NULL, lease_until = NULL, is_cancel_asked = false, progress = NULL, gate = NULL,
      is_alone = false, is_capped = false, charged = NULL
  FROM unnest(p_tid, p_state, p_because, p_delay, p_failures, p_crashes, p_crashes_alone, p_snoozes, p_suspect, p_tail)
       u (tid, state, because, delay, failures, crashes, crashes_alone, snoozes, suspect, tail)
  WHERE j.ctid = u.tid;
END $$;

-- Keys of jobs that were taken out: the idempotency key lives on for a while, the other is free at once.
CREATE OR REPLACE FUNCTION {s}.end_keys(p_now bigint, p_had {s}.keyed[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  UPDATE {s}.idempotency k SET state = u.state, settled_at = p_now FROM unnest(p_had) u
  WHERE k.tenant = u.tenant AND k.key = u.idempotency_key AND k.id = u.id;
  DELETE FROM {s}.dedup k USING unnest(p_had) u
  WHERE k.tenant = u.tenant AND k.task = u.task AND k.key = u.dedup_key AND k.id = u.id;
END $$;

-- The class of the last failure among a job's attempts. By its text: a message may hold what no text of SQL can.
CREATE OR REPLACE FUNCTION {s}.error_class(p_attempts text[]) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT substring(a.attempt FROM '"error_class":"([a-z_]+)"') FROM unnest(p_attempts) WITH ORDINALITY a (attempt, ord)
  WHERE a.attempt ~ '"error_class":"[a-z_]+"' ORDER BY a.ord DESC LIMIT 1
$$;

-- Jobs that are finished move to their last home, by one statement; give the keys that they had.
CREATE OR REPLACE FUNCTION {s}.take_out(p_now bigint, p_tid tid[], p_state text[], p_because text[],
  p_failures int[], p_crashes int[], p_crashes_alone int[], p_snoozes int[], p_suspect boolean[], p_tail text[],
  p_result bytea[])
RETURNS SETOF {s}.keyed LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  RETURN QUERY WITH ended AS (
    DELETE FROM {s}.job g
    USING unnest(p_tid, p_state, p_because, p_failures, p_crashes, p_crashes_alone, p_snoozes, p_suspect, p_tail, p_result)
          a (tid, state, because, failures, crashes, crashes_alone, snoozes, suspect, tail, result)
    WHERE g.ctid = a.tid AND a.state NOT IN ({delayed}, {ready})
    RETURNING g.id, g.tenant, g.queue, g.task, g.payload, g.checksum, g.version, g.priority, g.enqueued_at, g.expires_at,
           g.idempotency_key, g.dedup_key, g.dedup_until, g.correlation_id, g.parent_id, g.max_attempts, g.timeout,
           g.at_most_once, g.tags, g.metadata, g.created_by,
           a.state, a.because, g.run_at, g.sort_key, g.attempt, coalesce(a.failures, g.failures) AS failures,
           coalesce(a.crashes, g.crashes) AS crashes, coalesce(a.crashes_alone, g.crashes_alone) AS crashes_alone,
           coalesce(a.snoozes, g.snoozes) AS snoozes, coalesce(a.suspect, g.is_suspect) AS is_suspect, g.fence,
           {s}.with_attempt(p_now, g.attempts, g.attempt, g.worker, g.started_at, a.tail) AS attempts,
           p_now AS settled_at, a.result
  ), history AS (
    INSERT INTO {s}.history ({finished}) SELECT {finished} FROM ended WHERE state <> {dead}
  ), dead AS (
    INSERT INTO {s}.dead ({finished}, error_class)
    SELECT {finished}, {s}.error_class(attempts) FROM ended WHERE state = {dead}
  ), tally AS (
    INSERT INTO {s}.tally_delta (tenant, queue, state, jobs)
    SELECT tenant, queue, state, count(*) FROM ended GROUP BY tenant, queue, state
  )
  SELECT id, tenant, task, state, idempotency_key, dedup_key FROM ended
  WHERE idempotency_key IS NOT NULL OR dedup_key IS NOT NULL;
END $$;

-- The same for jobs that all end alike, in history: nothing is looked up by its place but what is taken out, and by one
-- scan, as the places are a parameter.
CREATE OR REPLACE FUNCTION {s}.take_out_alike(p_now bigint, p_tid tid[], p_state text, p_because text,
  p_failures int, p_crashes int, p_crashes_alone int, p_snoozes int, p_suspect boolean, p_tail text, p_result bytea)
RETURNS SETOF {s}.keyed LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
BEGIN
  RETURN QUERY WITH ended AS (
    DELETE FROM {s}.job WHERE ctid = ANY (p_tid) RETURNING *
  ), history AS (
    INSERT INTO {s}.history ({finished})
    SELECT {sent}, p_state, p_because, run_at, sort_key, attempt, coalesce(p_failures, failures),
           coalesce(p_crashes, crashes), coalesce(p_crashes_alone, crashes_alone), coalesce(p_snoozes, snoozes),
           coalesce(p_suspect, is_suspect), fence,
           {s}.with_attempt(p_now, attempts, attempt, worker, started_at, p_tail), p_now, p_result
    FROM ended
  ), tally AS (
    INSERT INTO {s}.tally_delta (tenant, queue, state, jobs)
    SELECT tenant, queue, p_state, count(*) FROM ended GROUP BY tenant, queue
  )
  SELECT id, tenant, task, p_state, idempotency_key, dedup_key FROM ended
  WHERE idempotency_key IS NOT NULL OR dedup_key IS NOT NULL;
END $$;

-- All of it for running jobs that end alike and need no delta.
CREATE OR REPLACE FUNCTION {s}.end_alike(p_now bigint, p_tid tid[], p_state text, p_because text, p_failures int,
  p_crashes int, p_crashes_alone int, p_snoozes int, p_suspect boolean, p_tail text, p_result bytea)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  had {s}.keyed[] := array(
    SELECT one FROM {s}.take_out_alike(p_now, p_tid, p_state, p_because, p_failures, p_crashes, p_crashes_alone, p_snoozes,
                                       p_suspect, p_tail, p_result) AS one);
BEGIN
  IF cardinality(had) > 0 THEN
    PERFORM {s}.end_keys(p_now, had);
  END IF;
END $$;

-- All of it: `p_noted` says that some row may need a delta.
CREATE OR REPLACE FUNCTION {s}.end_jobs(p_now bigint, p_noted boolean, p_tid tid[], p_state text[],
  p_because text[], p_delay bigint[], p_failures int[], p_crashes int[], p_crashes_alone int[], p_snoozes int[],
  p_suspect boolean[], p_tail text[], p_learns boolean[], p_result bytea[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  had {s}.keyed[];
BEGIN
  IF p_noted THEN
    PERFORM {s}.note_ends(p_now, p_tid, p_state, p_learns);
  END IF;
  IF p_state && ARRAY[{delayed}, {ready}]::text[] THEN
    PERFORM {s}.put_back(p_now, array_agg(tid), array_agg(state), array_agg(because), array_agg(delay),
                         array_agg(failures), array_agg(crashes), array_agg(crashes_alone), array_agg(snoozes),
                         array_agg(suspect), array_agg(tail))
    FROM unnest(p_tid, p_state, p_because, p_delay, p_failures, p_crashes, p_crashes_alone, p_snoozes, p_suspect, p_tail)
         a (tid, state, because, delay, failures, crashes, crashes_alone, snoozes, suspect, tail)
    WHERE state IN ({delayed}, {ready});
  END IF;
  had := array(
    SELECT one FROM {s}.take_out(p_now, p_tid, p_state, p_because, p_failures, p_crashes, p_crashes_alone, p_snoozes,
                                 p_suspect, p_tail, p_result) AS one);
  IF cardinality(had) > 0 THEN
    PERFORM {s}.end_keys(p_now, had);
  END IF;
END $$;

-- Where the rows of these jobs are, in this order.
CREATE OR REPLACE FUNCTION {s}.places_of(p_id uuid[]) RETURNS tid[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN (SELECT array_agg(j.tid ORDER BY u.n) FROM unnest(p_id) WITH ORDINALITY u (id, n)
          CROSS JOIN LATERAL (SELECT ctid AS tid FROM {s}.job WHERE id BETWEEN u.id AND u.id ORDER BY id LIMIT 1) j);
END $$;
