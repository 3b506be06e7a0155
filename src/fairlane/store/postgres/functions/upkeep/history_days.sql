-- History by day (S52): one partition of `history` for each day, created ahead. A job settled on a day without a
-- partition goes to `history_rest`, so no settlement ever fails for want of one.
-- Locks: see each function. None waits long: upkeep comes again in a minute.

-- The partitions that exist, and the instants from which and before which they take jobs.
CREATE OR REPLACE FUNCTION {schema}.history_days() RETURNS TABLE (day regclass, since bigint, until bigint)
  LANGUAGE sql STABLE AS $$
  SELECT c.oid::regclass, bound.at[1]::bigint, bound.at[2]::bigint
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  CROSS JOIN LATERAL regexp_match(
    pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(''(-?\d+)''\) TO \(''(-?\d+)''\)$') AS bound (at)
  WHERE i.inhparent = $s${schema}.history$s$::regclass AND bound.at IS NOT NULL
$$;

-- Create today and the two days after it where they are missing; return how many. Rows of that day in `history_rest`
-- move along, unless they are more than 10,000: then they stay there, and are pruned there.
-- Locks: a day ahead has no rows yet, and nobody waits for it. Where rows may have to move, as after a clock has
-- jumped, all of history is locked for milliseconds: whoever is about to write into the rest has chosen it already
-- and would fail, and readers would look for the rows where they were. It waits for others a fifth of a second, then
-- gives up.
CREATE OR REPLACE FUNCTION {schema}.create_history_days(p_now bigint) RETURNS int LANGUAGE plpgsql
  SET lock_timeout = '200ms' AS $$
DECLARE
  c_day CONSTANT bigint := 86400000000;
  v_schema CONSTANT text := $s${schema}$s$;
  v_today bigint := {schema}.now_or(p_now) / c_day * c_day;
  v_since bigint;
  v_rows int;
  v_name text;
  v_made int := 0;
BEGIN
  FOR v_since IN SELECT v_today + c_day * n FROM generate_series(0, 2) n LOOP
    CONTINUE WHEN EXISTS (SELECT 1 FROM {schema}.history_days() d WHERE d.since <= v_since AND d.until > v_since);
    IF NOT pg_try_advisory_xact_lock(hashtextextended($s${schema} days$s$, 0)) THEN
      RETURN v_made;
    END IF;
    IF v_since = v_today THEN
      LOCK TABLE ONLY {schema}.history IN ACCESS EXCLUSIVE MODE;
    END IF;
    LOCK TABLE {schema}.history_rest IN ACCESS EXCLUSIVE MODE;
    CONTINUE WHEN EXISTS (SELECT 1 FROM {schema}.history_days() d WHERE d.since <= v_since
      AND d.until > v_since);  -- created meanwhile
    SELECT count(*) INTO v_rows FROM (SELECT 1 FROM {schema}.history_rest
                                      WHERE settled_at >= v_since AND settled_at < v_since + c_day LIMIT 10001) many;
    CONTINUE WHEN v_rows > 10000 OR (v_rows > 0 AND v_since > v_today);
    v_name := format('%s.%I', v_schema,
                     'history_' || to_char(to_timestamp(v_since / 1000000) AT TIME ZONE 'UTC', 'YYYYMMDD'));
    EXECUTE format('CREATE TABLE IF NOT EXISTS %s (LIKE %s.history INCLUDING ALL)', v_name, v_schema);
    EXECUTE format('WITH moved AS (DELETE FROM %s.history_rest WHERE settled_at >= %s AND settled_at < %s RETURNING *)
                    INSERT INTO %s SELECT * FROM moved', v_schema, v_since, v_since + c_day, v_name);
    EXECUTE format('ALTER TABLE %s.history ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)',
                   v_schema, v_name, v_since, v_since + c_day);
    v_made := v_made + 1;
  END LOOP;
  RETURN v_made;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
  RETURN 0;
END $$;

-- Whether a partition exists and nobody else creates or drops partitions until the end of the transaction.
CREATE OR REPLACE FUNCTION {schema}.lock_history_day(p_day regclass) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN pg_try_advisory_xact_lock(hashtextextended($s${schema} days$s$, 0))
     AND EXISTS (SELECT 1 FROM {schema}.history_days() d WHERE d.day = p_day);
END $$;

-- Empty a day whose jobs are all past their retention; the counts follow. NULL: somebody reads it, come again.
-- Locks: the partition against changes while it is counted, then exclusively; settlements go elsewhere and do not
-- wait.
CREATE OR REPLACE FUNCTION {schema}.empty_history_day(p_day regclass) RETURNS bigint LANGUAGE plpgsql
  SET lock_timeout = '500ms' AS $$
DECLARE
  v_jobs bigint;
BEGIN
  IF NOT {schema}.lock_history_day(p_day) THEN
    RETURN NULL;
  END IF;
  EXECUTE format('LOCK TABLE %s IN SHARE MODE', p_day);
  EXECUTE format('WITH gone AS (
                    INSERT INTO %s.tally_delta (tenant, queue, state, jobs)
                    SELECT tenant, queue, state, -count(*) FROM %s GROUP BY tenant, queue, state RETURNING jobs)
                  SELECT coalesce(-sum(jobs), 0) FROM gone', $s${schema}$s$, p_day) INTO v_jobs;
  IF v_jobs > 0 THEN
    EXECUTE format('TRUNCATE TABLE %s', p_day);
  END IF;
  RETURN v_jobs;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
  RETURN NULL;
END $$;

-- Drop a partition that is empty; return whether.
-- Locks: all of history, exclusively, for milliseconds: a settlement waits for it, and it waits for others at most a
-- tenth of a second.
CREATE OR REPLACE FUNCTION {schema}.drop_history_day(p_day regclass) RETURNS boolean LANGUAGE plpgsql
  SET lock_timeout = '100ms' AS $$
DECLARE
  is_empty boolean;
BEGIN
  IF NOT {schema}.lock_history_day(p_day) THEN
    RETURN false;
  END IF;
  LOCK TABLE ONLY {schema}.history IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM %s)', p_day) INTO is_empty;
  IF is_empty THEN
    EXECUTE format('DROP TABLE %s', p_day);
  END IF;
  RETURN is_empty;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
  RETURN false;
END $$;

-- Add rows of `tally_delta` to `tally`, a bounded number; return how many.
-- Locks: one at a time, others do nothing.
CREATE OR REPLACE FUNCTION {schema}.sum_tally_deltas(p_limit int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_rows tid[];
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended($s${schema} tally$s$, 0)) THEN
    RETURN 0;
  END IF;
  v_rows := ARRAY(SELECT ctid FROM {schema}.tally_delta LIMIT p_limit);
  IF cardinality(v_rows) = 0 THEN
    RETURN 0;
  END IF;
  WITH gone AS (DELETE FROM {schema}.tally_delta WHERE ctid = ANY (v_rows) RETURNING *)
  INSERT INTO {schema}.tally AS t (tenant, queue, state, jobs)
  SELECT tenant, queue, state, sum(jobs) FROM gone GROUP BY tenant, queue, state HAVING sum(jobs) <> 0
  ON CONFLICT (tenant, queue, state) DO UPDATE SET jobs = t.jobs + excluded.jobs;
  RETURN cardinality(v_rows);
END $$;
