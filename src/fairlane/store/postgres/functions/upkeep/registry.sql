-- The registry of workers: one call each for what every worker does all the time. Nothing here waits for the disk:
-- what a crash loses is said again in a moment.
-- Parameters: `p_gap`: a longer silence of all workers is an outage (S38). Index: primary keys. Locks: the worker's
-- own row, published tasks in the order of their names, the common heartbeat in `meta`.

-- Register a worker; its tasks are given in the order of their names.
CREATE OR REPLACE FUNCTION {schema}.register(p_now bigint, p_worker text, p_record bytea, p_tasks text[], p_task_records bytea[],
                                             p_gap bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := {schema}.now_or(p_now);
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO {schema}.worker (id, record, tasks, task_records, state, started_at, beat_at)
  VALUES (p_worker, p_record, p_tasks, p_task_records, 'starting', v_now, v_now)
  ON CONFLICT (id) DO UPDATE SET record = excluded.record, tasks = excluded.tasks, task_records = excluded.task_records,
    state = excluded.state, started_at = excluded.started_at, beat_at = excluded.beat_at, running = 0, settled = 0,
    failed = 0, memory = NULL, cpu = NULL;
  PERFORM {schema}.publish_tasks(v_now, p_tasks, p_task_records, p_gap);
END $$;

-- Note that a worker lives, what it does and what its process uses; false: it is not known.
CREATE OR REPLACE FUNCTION {schema}.heartbeat(p_now bigint, p_worker text, p_state text, p_running int, p_settled bigint,
                                              p_failed bigint, p_gap bigint, p_memory bigint, p_cpu double precision)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := {schema}.now_or(p_now);
  v_tasks text[];
  v_task_records bytea[];
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE {schema}.worker SET state = p_state, beat_at = v_now, running = p_running, settled = p_settled, failed = p_failed,
    memory = p_memory, cpu = p_cpu
  WHERE id = p_worker RETURNING tasks, task_records INTO v_tasks, v_task_records;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM {schema}.publish_tasks(v_now, v_tasks, v_task_records, p_gap);
  RETURN true;
END $$;

-- The same for workers of versions that do not say what they use.
CREATE OR REPLACE FUNCTION {schema}.heartbeat(p_now bigint, p_worker text, p_state text, p_running int, p_settled bigint,
                                              p_failed bigint, p_gap bigint) RETURNS boolean LANGUAGE sql AS $$
  SELECT {schema}.heartbeat(p_now, p_worker, p_state, p_running, p_settled, p_failed, p_gap, NULL, NULL)
$$;

-- Publish the tasks of a worker that lives, and note the common heartbeat.
CREATE OR REPLACE FUNCTION {schema}.publish_tasks(p_at bigint, p_tasks text[], p_task_records bytea[], p_gap bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_last bigint;
BEGIN
  INSERT INTO {schema}.published_task (name, record, seen_at) SELECT name, record, p_at
    FROM unnest(p_tasks, p_task_records) AS task (name, record)
  ON CONFLICT (name) DO UPDATE SET record = excluded.record, seen_at = excluded.seen_at;
  SELECT value::bigint INTO v_last FROM {schema}.meta WHERE name = 'beat_at' FOR UPDATE;
  INSERT INTO {schema}.meta (name, value)
  SELECT name, p_at::text FROM unnest(CASE WHEN v_last IS NULL OR p_at - v_last > p_gap
                                      THEN ARRAY['beat_at', 'resumed_at'] ELSE ARRAY['beat_at'] END) AS name
  ON CONFLICT (name) DO UPDATE SET value = excluded.value;
END $$;

-- Give the lead to whoever asks first, keep it for whoever has it; return who leads until when.
CREATE OR REPLACE FUNCTION {schema}.lead(p_now bigint, p_name text, p_worker text, p_lease bigint)
RETURNS TABLE (leader text, lasts_until bigint) LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := {schema}.now_or(p_now);
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO {schema}.lead AS held (name, worker, until) VALUES (p_name, p_worker, v_now + p_lease)
  ON CONFLICT (name) DO UPDATE SET worker = excluded.worker, until = excluded.until
  WHERE held.worker = excluded.worker OR held.until <= v_now;
  -- By a newer snapshot: another worker may have taken it in between.
  RETURN QUERY SELECT held.worker, held.until FROM {schema}.lead AS held WHERE held.name = p_name;
END $$;
