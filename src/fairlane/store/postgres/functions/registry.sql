-- Who is there: one call each for what every worker does all the time. Nothing here waits for the disk: what a crash
-- loses is said again in a moment. Found by primary keys. Locks: the worker's own row, published tasks by name, the pulse.

-- Introduce a worker; its tasks are given in the order of their names. p_gap: a longer silence of all is an outage (S38).
CREATE OR REPLACE FUNCTION {s}.register(p_now bigint, p_worker text, p_card bytea, p_tasks text[], p_cards bytea[],
                                        p_gap bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := {s}.now_or(p_now);
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO {s}.worker (id, card, tasks, cards, state, started_at, beat_at)
  VALUES (p_worker, p_card, p_tasks, p_cards, 'starting', v_now, v_now)
  ON CONFLICT (id) DO UPDATE SET card = excluded.card, tasks = excluded.tasks, cards = excluded.cards,
    state = excluded.state, started_at = excluded.started_at, beat_at = excluded.beat_at, running = 0, settled = 0,
    failed = 0;
  PERFORM {s}.note(v_now, p_tasks, p_cards, p_gap);
END $$;

-- Note that a worker lives, and what it does; false: it is not known.
CREATE OR REPLACE FUNCTION {s}.heartbeat(p_now bigint, p_worker text, p_state text, p_running int, p_settled bigint,
                                         p_failed bigint, p_gap bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := {s}.now_or(p_now);
  v_tasks text[];
  v_cards bytea[];
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE {s}.worker SET state = p_state, beat_at = v_now, running = p_running, settled = p_settled, failed = p_failed
  WHERE id = p_worker RETURNING tasks, cards INTO v_tasks, v_cards;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM {s}.note(v_now, v_tasks, v_cards, p_gap);
  RETURN true;
END $$;

-- Publish the tasks of a worker that lives, and feel the pulse of all.
CREATE OR REPLACE FUNCTION {s}.note(p_at bigint, p_tasks text[], p_cards bytea[], p_gap bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_last bigint;
BEGIN
  INSERT INTO {s}.published (name, card, seen_at) SELECT name, card, p_at FROM unnest(p_tasks, p_cards) AS task (name, card)
  ON CONFLICT (name) DO UPDATE SET card = excluded.card, seen_at = excluded.seen_at;
  SELECT value::bigint INTO v_last FROM {s}.meta WHERE name = 'beat_at' FOR UPDATE;
  INSERT INTO {s}.meta (name, value)
  SELECT name, p_at::text FROM unnest(CASE WHEN v_last IS NULL OR p_at - v_last > p_gap
                                      THEN ARRAY['beat_at', 'resumed_at'] ELSE ARRAY['beat_at'] END) AS name
  ON CONFLICT (name) DO UPDATE SET value = excluded.value;
END $$;

-- Give the lead to whoever asks first, keep it for whoever has it; say who leads until when.
CREATE OR REPLACE FUNCTION {s}.lead(p_now bigint, p_name text, p_worker text, p_lease bigint)
RETURNS TABLE (leader text, lasts_until bigint) LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := {s}.now_or(p_now);
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO {s}.lead AS held (name, worker, until) VALUES (p_name, p_worker, v_now + p_lease)
  ON CONFLICT (name) DO UPDATE SET worker = excluded.worker, until = excluded.until
  WHERE held.worker = excluded.worker OR held.until <= v_now;
  -- By a newer snapshot: it may be somebody else's since a moment.
  RETURN QUERY SELECT held.worker, held.until FROM {s}.lead AS held WHERE held.name = p_name;
END $$;
