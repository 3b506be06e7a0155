-- The ends of attempts and of waits: jobs leave `job` or wait again, and all that follows is written in the same
-- step.
-- Parameters: `p_tid` says where the rows are; the caller has locked the rows of running jobs, or holds the queue
-- lock of waiting ones. The mark `end_params` is the list `ENDS` of columns.py; counters and metadata that are NULL stay.
-- Index: the primary keys of `idempotency` and `dedup`; rows of `job` are found by their ctid. Locks: no new ones.

-- The functions of before, which did not know `kept`; the old and the new ones could not be told apart.
DROP FUNCTION IF EXISTS {schema}.end_jobs(bigint, boolean, tid[], text[], text[], bigint[], int[], int[], int[], int[], boolean[], text[], boolean[], bytea[]);
DROP FUNCTION IF EXISTS {schema}.end_jobs_alike(bigint, tid[], text, text, bigint, int, int, int, int, boolean, text, boolean, bytea);
DROP FUNCTION IF EXISTS {schema}.requeue_jobs(bigint, tid[], text[], text[], bigint[], int[], int[], int[], int[], boolean[], text[], boolean[], bytea[]);
DROP FUNCTION IF EXISTS {schema}.finish_jobs(bigint, tid[], text[], text[], bigint[], int[], int[], int[], int[], boolean[], text[], boolean[], bytea[]);
DROP FUNCTION IF EXISTS {schema}.finish_jobs_alike(bigint, tid[], text, text, bigint, int, int, int, int, boolean, text, boolean, bytea);
DROP FUNCTION IF EXISTS {schema}.append_attempt(bigint, text[], int, text, bigint, text);

-- All of it. `p_noted`: some row may need a delta.
CREATE OR REPLACE FUNCTION {schema}.end_jobs(p_now bigint, p_noted boolean, p_tid tid[], {end_params})
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  keys {schema}.finished_keys[] := '{}';
BEGIN
  IF p_noted THEN
    PERFORM {schema}.write_end_deltas(p_now, p_tid, p_state, p_learns, p_tail);
  END IF;
  IF p_state && ARRAY[{delayed}, {ready}]::text[] THEN
    PERFORM {schema}.requeue_jobs(p_now, array_agg(tid), {end_arrays})
    FROM unnest(p_tid, {end_args}) a (tid, {end_names})
    WHERE state IN ({delayed}, {ready});
  END IF;
  IF p_state && ARRAY[{succeeded}, {cancelled}]::text[] THEN
    keys := array(
      SELECT one FROM {schema}.finish_jobs(p_now, p_tid, {end_args}) AS one);
  END IF;
  IF p_state && ARRAY[{dead}]::text[] THEN
    keys := keys || array(
      SELECT one FROM {schema}.move_to_dead(p_now, p_tid, {end_args}) AS one);
  END IF;
  IF cardinality(keys) > 0 THEN
    PERFORM {schema}.end_keys(p_now, keys);
  END IF;
END $$;

-- All of it for running jobs that end alike in history and need no delta.
CREATE OR REPLACE FUNCTION {schema}.end_jobs_alike(p_now bigint, p_tid tid[], {end_params_alike})
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  keys {schema}.finished_keys[] := array(
    SELECT one FROM {schema}.finish_jobs_alike(p_now, p_tid, {end_args}) AS one);
BEGIN
  IF cardinality(keys) > 0 THEN
    PERFORM {schema}.end_keys(p_now, keys);
  END IF;
END $$;

-- Write deltas for jobs that no longer wait, wait again, or free a slot. Called before the rows change. A claim that comes back
-- unstarted (S68) gives its whole charge back: `took` is 0 beside a job that is ready again.
DROP FUNCTION IF EXISTS {schema}.write_end_deltas(bigint, tid[], text[], boolean[]);
CREATE OR REPLACE FUNCTION {schema}.write_end_deltas(p_now bigint, p_tid tid[], p_state text[], p_learns boolean[],
  p_tail text[])
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  WITH e AS MATERIALIZED (
    SELECT u.ord, u.next, u.learns, j.id, j.queue, j.tenant, j.task, j.state, j.sort_key, j.charged, j.started_at,
           j.is_capped, j.state = {running} AND u.tail IS NULL AS is_unstarted,
           CASE WHEN j.charged IS NOT NULL OR (j.state = {running} AND u.tail IS NULL)
                THEN {schema}.stride_of(p_now, j.tenant) END AS stride
    FROM unnest(p_tid, p_state, p_learns, p_tail) WITH ORDINALITY u (tid, next, learns, tail, ord)
    JOIN {schema}.job j ON j.ctid = u.tid OFFSET 0)
  INSERT INTO {schema}.delta (ord, queue, tenant, task, delayed, ready, head_key, head_id, vt, took, is_freed, delayed_at)
  -- Jobs that waited and will not wait again are only counted: a purge of a thousand is one row for each strand.
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
         CASE WHEN e.is_unstarted THEN -{schema}.charge(e.stride, coalesce(e.charged, 1000000))
              WHEN e.charged IS NULL THEN 0
              ELSE {schema}.charge(e.stride, p_now - coalesce(e.started_at, p_now)) - {schema}.charge(e.stride, e.charged) END,
         CASE WHEN e.is_unstarted THEN 0
              WHEN e.charged IS NOT NULL AND e.learns THEN p_now - coalesce(e.started_at, p_now) END,
         e.is_capped, CASE WHEN e.next = {delayed} THEN p_now END
  FROM e
  WHERE (e.state = {running} OR e.next IN ({delayed}, {ready}))
    AND (e.state <> {running} OR e.next IN ({delayed}, {ready}) OR e.charged IS NOT NULL OR e.is_capped);
END $$;

-- Let running jobs wait again. One without a `tail` was not started: its attempt's number is given back.
CREATE OR REPLACE FUNCTION {schema}.requeue_jobs(p_now bigint, p_tid tid[], {end_params})
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  UPDATE {schema}.job j
  SET state = u.state, because = u.because,
      run_at = CASE WHEN u.state = {delayed} THEN p_now + u.delay ELSE j.run_at END,
      sort_key = CASE WHEN u.state = {delayed} THEN p_now + u.delay - j.priority * {priority_step} ELSE j.sort_key END,
      {unless_null},
      attempt = j.attempt - (u.tail IS NULL AND j.state = {running})::int,
      attempts = {schema}.append_attempt(p_now, j.attempts, j.attempt, j.worker, j.started_at, u.tail, u.kept),
      worker = NULL, started_at = NULL, lease_until = NULL, is_cancel_asked = false, progress = NULL, gate = NULL,
      is_capped = false, charged = NULL
  FROM unnest(p_tid, {end_args}) u (tid, {end_names})
  WHERE j.ctid = u.tid;
END $$;

-- Move jobs that succeeded or were cancelled to `history`, by one statement; return the keys that they had.
CREATE OR REPLACE FUNCTION {schema}.finish_jobs(p_now bigint, p_tid tid[], {end_params})
RETURNS SETOF {schema}.finished_keys LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  RETURN QUERY WITH ended AS (
    DELETE FROM {schema}.job g
    USING unnest(p_tid, {end_args}) a (tid, {end_names})
    WHERE g.ctid = a.tid AND a.state IN ({succeeded}, {cancelled})
    RETURNING {finished_values}
  ), history AS (
    INSERT INTO {schema}.history ({finished}) SELECT {finished} FROM ended
  ), tally AS (
    INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs)
    SELECT tenant, queue, state, count(*) FROM ended GROUP BY tenant, queue, state
  )
  SELECT id, tenant, task, state, idempotency_key, dedup_key FROM ended
  WHERE idempotency_key IS NOT NULL OR dedup_key IS NOT NULL;
END $$;

-- Move jobs that died to `dead`, with class and fingerprint of their last failure, and append the events of their
-- deaths, one for each tenant, queue, task and fingerprint, as `model.journal.facts.deaths` makes them. Return the keys
-- that the jobs had.
DROP FUNCTION IF EXISTS {schema}.error_class(text[]);
CREATE OR REPLACE FUNCTION {schema}.move_to_dead(p_now bigint, p_tid tid[], {end_params})
RETURNS SETOF {schema}.finished_keys LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  RETURN QUERY WITH ended AS (
    DELETE FROM {schema}.job g
    USING unnest(p_tid, {end_args}) a (tid, {end_names})
    WHERE g.ctid = a.tid AND a.state = {dead}
    RETURNING {finished_values}
  ), letter AS (
    INSERT INTO {schema}.dead ({finished}, error_class, fingerprint)
    -- Matched as text: a message may hold what no SQL text can. Versions before made no fingerprint.
    SELECT {finished}, substring(failed.record FROM '"error_class":"([a-z_]+)"'),
           coalesce(substring(failed.record FROM '"fingerprint":"([0-9a-f]*)"'), '')
    FROM ended LEFT JOIN LATERAL (
      SELECT a.record FROM unnest(ended.attempts) WITH ORDINALITY a (record, ord)
      WHERE a.record ~ '"error_class":"[a-z_]+"' ORDER BY a.ord DESC LIMIT 1) failed ON true
    RETURNING id, tenant, queue, task, because, created_by, error_class, fingerprint
  ), event AS (
    INSERT INTO {schema}.pending_entry (journal, at, kind, tenant, subject, count, body)
    SELECT 'events', p_now, {dead_letter}, tenant, coalesce(nullif(fingerprint, ''), task), jobs,
           convert_to('{"because":' || to_json(split_part(coalesce(because, ''), ':', 1))
             || ',"created_by":' || coalesce(to_json(created_by)::text, 'null')
             || ',"error_class":' || coalesce(to_json(error_class)::text, 'null') || ',"job":"' || id
             || '","queue":' || to_json(queue) || ',"task":' || to_json(task) || '}', 'UTF8')
    FROM (SELECT DISTINCT ON (tenant, queue, task, fingerprint) letter.*,
                 count(*) OVER (PARTITION BY tenant, queue, task, fingerprint) AS jobs
          FROM letter ORDER BY tenant, queue, task, fingerprint, id) first
  ), tally AS (
    INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs)
    SELECT tenant, queue, state, count(*) FROM ended GROUP BY tenant, queue, state
  )
  SELECT id, tenant, task, state, idempotency_key, dedup_key FROM ended
  WHERE idempotency_key IS NOT NULL OR dedup_key IS NOT NULL;
END $$;

-- The same for jobs that all end alike, in `history`. Rows are found by one scan of their locations, because these
-- are a parameter and not joined.
CREATE OR REPLACE FUNCTION {schema}.finish_jobs_alike(p_now bigint, p_tid tid[], {end_params_alike})
RETURNS SETOF {schema}.finished_keys LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
BEGIN
  RETURN QUERY WITH ended AS (
    DELETE FROM {schema}.job WHERE ctid = ANY (p_tid) RETURNING *
  ), history AS (
    INSERT INTO {schema}.history ({finished})
    SELECT {finished_values_alike}
    FROM ended
  ), tally AS (
    INSERT INTO {schema}.tally_delta (tenant, queue, state, jobs)
    SELECT tenant, queue, p_state, count(*) FROM ended GROUP BY tenant, queue
  )
  SELECT id, tenant, task, p_state, idempotency_key, dedup_key FROM ended
  WHERE idempotency_key IS NOT NULL OR dedup_key IS NOT NULL;
END $$;

-- The record of an attempt that ends now, after those before it; only the last ones are stored. STABLE, as `to_json`
-- is: the body of an immutable function would not be inlined, which costs a call for each row.
CREATE OR REPLACE FUNCTION {schema}.append_attempt(p_now bigint, p_before text[], p_number int, p_worker text, p_started bigint,
  p_tail text, p_kept int)
RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN p_tail IS NULL THEN p_before ELSE
    p_before[greatest(coalesce(cardinality(p_before), 0) - p_kept + 2, 1):]
    || ('{"number":' || p_number || ',"worker":' || to_json(p_worker)::text || ',"started_at":'
        || coalesce(p_started, p_now) || ',"ended_at":' || p_now || ',' || p_tail) END
$$;

-- Where the rows of these jobs are, in this order.
CREATE OR REPLACE FUNCTION {schema}.row_locations(p_id uuid[]) RETURNS tid[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN (SELECT array_agg(j.tid ORDER BY u.n) FROM unnest(p_id) WITH ORDINALITY u (id, n)
          CROSS JOIN LATERAL (SELECT ctid AS tid FROM {schema}.job WHERE id BETWEEN u.id AND u.id ORDER BY id LIMIT 1) j);
END $$;
