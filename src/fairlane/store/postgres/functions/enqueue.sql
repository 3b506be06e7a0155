-- Enqueue (S11-S20): a batch that nothing can refuse comes in by one call, any other answers NULL and leaves nothing
-- behind. Only appends: it takes no mutex and changes no row that another writes. Index: job_id, term_waiting, the keys of
-- term, hold and policy, and of the two tables of keys. Locks: none; it waits for nobody but who holds the same
-- idempotency or de-duplication key, or id, in a transaction that is still open, at most 5 s (S13).

-- Where to look for deltas that may not be folded: all before are.
CREATE OR REPLACE FUNCTION {s}.unfolded_since(p_queue text) RETURNS xid8 LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT CASE WHEN pg_snapshot_xmax(q.seen) <= pg_snapshot_xmax(pg_current_snapshot())
                               THEN pg_snapshot_xmin(q.seen) END
                   FROM {s}.queue q WHERE q.name = p_queue ORDER BY q.name, q.ver DESC LIMIT 1), '0')
$$;

-- How many jobs of a tenant wait in a queue, folded or not.
CREATE OR REPLACE FUNCTION {s}.waiting_of(p_queue text, p_tenant text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT t.delayed + t.ready FROM {s}.turn t WHERE t.queue = p_queue AND t.tenant = p_tenant
                   ORDER BY t.queue, t.tenant, t.ver DESC LIMIT 1), 0)
       + coalesce((SELECT sum(d.delayed + d.ready) FROM {s}.delta d
                   WHERE d.queue = p_queue AND d.xid >= {s}.unfolded_since(p_queue) AND d.tenant = p_tenant), 0)
$$;

CREATE OR REPLACE FUNCTION {s}.queue_waiting(p_queue text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT q.waiting FROM {s}.queue q WHERE q.name = p_queue ORDER BY q.name, q.ver DESC LIMIT 1), 0)
       + coalesce((SELECT sum(d.delayed + d.ready) FROM {s}.delta d
                   WHERE d.queue = p_queue AND d.xid >= {s}.unfolded_since(p_queue)), 0)
$$;

-- What takes no new jobs of this queue, tenant and task, and why.
CREATE OR REPLACE FUNCTION {s}.closed(p_now bigint, p_queue text, p_tenant text, p_task text) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT kind || ' ' || name || ': ' || reason FROM {s}.hold_of(p_now, 'closed', 'queue', p_queue)),
                  (SELECT kind || ' ' || name || ': ' || reason FROM {s}.hold_of(p_now, 'closed', 'tenant', p_tenant)),
                  (SELECT kind || ' ' || name || ': ' || reason FROM {s}.hold_of(p_now, 'closed', 'task', p_task)))
$$;

CREATE OR REPLACE FUNCTION {s}.is_declared(p_tenant text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM {s}.policy WHERE kind = 'tenant' AND name = p_tenant AND declared IS NOT NULL)
$$;

-- Whether nothing that stands now can refuse or warn of any of these jobs. `p_known`: the tenants that must be declared.
CREATE OR REPLACE FUNCTION {s}.is_free(p_now bigint, p_known text[], p_tenant text[], p_queue text[], p_task text[])
RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT FROM unnest(p_known) t (name) WHERE NOT {s}.is_declared(t.name)) THEN
    RETURN false;
  END IF;
  IF EXISTS (SELECT FROM {s}.hold) AND EXISTS (
    SELECT FROM (SELECT DISTINCT u.* FROM unnest(p_queue, p_tenant, p_task) u (queue, tenant, task)) p
    WHERE {s}.closed(p_now, p.queue, p.tenant, p.task) IS NOT NULL) THEN
    RETURN false;
  END IF;
  RETURN NOT EXISTS (SELECT FROM {s}.term WHERE waiting IS NOT NULL OR max_waiting IS NOT NULL) OR NOT (EXISTS (
    SELECT FROM (SELECT u.queue, u.tenant, count(*) AS more FROM unnest(p_queue, p_tenant) u (queue, tenant)
                 GROUP BY u.queue, u.tenant) p
    CROSS JOIN LATERAL {s}.limits_of(p_now, p.queue, p.tenant) l
    WHERE l.waiting IS NOT NULL AND {s}.waiting_of(p.queue, p.tenant) + p.more > l.waiting
  ) OR EXISTS (
    SELECT FROM (SELECT u.queue, count(*) AS more FROM unnest(p_queue) u (queue) GROUP BY u.queue) p
    CROSS JOIN LATERAL {s}.term_of(p_now, 'queue', p.queue) t
    WHERE t.max_waiting IS NOT NULL AND {s}.queue_waiting(p.queue) + p.more > t.max_waiting));
END $$;

-- Take keys that are free, in their order, so that two batches never wait for each other; give those that were.
CREATE OR REPLACE FUNCTION {s}.take_keys(p_tenant text[], p_key text[], p_id uuid[], p_fingerprint bytea[],
  OUT tenants text[], OUT keys text[])
LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
BEGIN
  WITH taken AS (
    INSERT INTO {s}.idempotency (tenant, key, id, fingerprint)
    SELECT u.tenant, u.key, u.id, u.fingerprint FROM unnest(p_tenant, p_key, p_id, p_fingerprint) WITH ORDINALITY
           u (tenant, key, id, fingerprint, n)
    WHERE u.key IS NOT NULL ORDER BY u.tenant, u.key, u.n
    ON CONFLICT DO NOTHING RETURNING tenant, key)
  SELECT array_agg(tenant), array_agg(key) INTO tenants, keys FROM taken;
END $$;

-- Lock the keys of dead jobs, in their order, until the end of the transaction; give those that still are. Whoever
-- replaces the same job waits here, and finds it replaced.
CREATE OR REPLACE FUNCTION {s}.hold_dead(p_tenant text[], p_key text[]) RETURNS TABLE (tenant text, key text)
LANGUAGE plpgsql SET lock_timeout = '5s'
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_held record; u record;
BEGIN
  FOR u IN SELECT * FROM unnest(p_tenant, p_key) wanted (tenant, key) ORDER BY wanted.tenant, wanted.key LOOP
    SELECT k.tenant, k.key INTO v_held FROM {s}.idempotency k
    WHERE k.tenant = u.tenant AND k.key = u.key AND k.state = {dead} FOR UPDATE;
    IF FOUND THEN
      tenant := v_held.tenant;
      key := v_held.key;
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION {s}.take_dedup(p_tenant text[], p_task text[], p_key text[], p_id uuid[],
  OUT tenants text[], OUT tasks text[], OUT keys text[])
LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
BEGIN
  WITH taken AS (
    INSERT INTO {s}.dedup (tenant, task, key, id)
    SELECT u.tenant, u.task, u.key, u.id FROM unnest(p_tenant, p_task, p_key, p_id) WITH ORDINALITY
           u (tenant, task, key, id, n)
    WHERE u.key IS NOT NULL ORDER BY u.tenant, u.task, u.key, u.n
    ON CONFLICT DO NOTHING RETURNING tenant, task, key)
  SELECT array_agg(tenant), array_agg(task), array_agg(key) INTO tenants, tasks, keys FROM taken;
END $$;

CREATE OR REPLACE FUNCTION {s}.leave_keys(p_tenant text[], p_key text[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  DELETE FROM {s}.idempotency k USING unnest(p_tenant, p_key) u (tenant, key)
  WHERE k.tenant = u.tenant AND k.key = u.key;
END $$;

CREATE OR REPLACE FUNCTION {s}.leave_dedup(p_tenant text[], p_task text[], p_key text[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  DELETE FROM {s}.dedup k USING unnest(p_tenant, p_task, p_key) u (tenant, task, key)
  WHERE k.tenant = u.tenant AND k.task = u.task AND k.key = u.key;
END $$;

-- Whether one of these ids belongs to a finished job. A job settles after its id was made, so the days before that are
-- left out, but for one: clocks of clients differ. An id that does not tell its time is looked for in all days. The ids of
-- a batch lie close together: mostly one look shows that nothing finished is among them.
CREATE OR REPLACE FUNCTION {s}.is_any_finished(p_id uuid[]) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_since bigint := 0;
  v_first uuid := (SELECT u.id FROM unnest(p_id) u (id) ORDER BY u.id LIMIT 1);
  v_last uuid := (SELECT u.id FROM unnest(p_id) u (id) ORDER BY u.id DESC LIMIT 1);
BEGIN
  IF NOT EXISTS (SELECT FROM unnest(p_id) u (id) WHERE get_byte(uuid_send(u.id), 6) >> 4 <> 7) THEN
    v_since := ('x' || encode(substring(uuid_send(v_first) FOR 6), 'hex'))::bit(48)::bigint * 1000 - 86400000000;
  END IF;
  RETURN {s}.is_any_finished_in(v_since, ARRAY[v_first], ARRAY[v_last])
    AND (v_first = v_last OR {s}.is_any_finished_in(v_since, p_id, p_id));
END $$;

-- Whether a job that finished since an instant has its id in one of these ranges.
CREATE OR REPLACE FUNCTION {s}.is_any_finished_in(p_since bigint, p_first uuid[], p_last uuid[]) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM unnest(p_first, p_last) u (first, last) CROSS JOIN LATERAL (
      (SELECT h.id FROM {s}.history h WHERE h.settled_at >= p_since AND h.id BETWEEN u.first AND u.last ORDER BY h.id LIMIT 1)
      UNION ALL
      (SELECT d.id FROM {s}.dead d WHERE d.id BETWEEN u.first AND u.last ORDER BY d.id LIMIT 1)) found);
END $$;

-- Write jobs and a delta for each strand. False, and nothing is written, if one of the ids is there already, in any home.
-- A column that may not be NULL has one value for each job, or one for all of them; an id is of one alone.
CREATE OR REPLACE FUNCTION {s}.bring_in(p_now bigint, p_id uuid[], p_tenant text[], p_queue text[], p_task text[],
  p_payload bytea[], p_checksum bigint[], p_version int[], p_priority int[], p_run_at bigint[], p_delay bigint[],
  p_expires_at bigint[], p_expires_in bigint[], p_key text[], p_dedup text[], p_dedup_until text[],
  p_correlation text[], p_parent uuid[], p_max_attempts int[], p_timeout bigint[], p_at_most_once boolean[],
  p_tags text[], p_metadata bytea[], p_created_by text[])
RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
DECLARE
  v_most int := cardinality(p_id);
BEGIN
  p_tenant := {s}.for_each(p_tenant, v_most);
  p_queue := {s}.for_each(p_queue, v_most);
  p_task := {s}.for_each(p_task, v_most);
  BEGIN
    INSERT INTO {s}.job (id, tenant, queue, task, state, because, payload, checksum, version, priority, enqueued_at,
                         run_at, sort_key, expires_at, idempotency_key, dedup_key, dedup_until, correlation_id,
                         parent_id, max_attempts, timeout, at_most_once, tags, metadata, created_by)
    SELECT id, tenant, queue, task, CASE WHEN due > p_now THEN {delayed} ELSE {ready} END,
           CASE WHEN due > p_now THEN 'time' END, payload, checksum, coalesce(version, p_version[1]),
           coalesce(priority, p_priority[1]), p_now, due, due - coalesce(priority, p_priority[1]) * {priority_step},
           coalesce(p_now + expires_in, expires_at), key, dedup, coalesce(dedup_until, p_dedup_until[1]), correlation, parent,
           coalesce(max_attempts, p_max_attempts[1]), timeout, coalesce(at_most_once, p_at_most_once[1]),
           CASE WHEN tags IS NOT NULL THEN array(SELECT json_array_elements_text(tags::json)) END,
           coalesce(metadata, p_metadata[1]), created_by
    FROM (SELECT u.*, greatest(coalesce(u.run_at, p_now + u.delay), p_now) AS due
          FROM unnest(p_id, p_tenant, p_queue, p_task, p_payload, p_checksum, p_version, p_priority, p_run_at, p_delay,
                      p_expires_at, p_expires_in, p_key, p_dedup, p_dedup_until, p_correlation, p_parent,
                      p_max_attempts, p_timeout, p_at_most_once, p_tags, p_metadata, p_created_by)
               u (id, tenant, queue, task, payload, checksum, version, priority, run_at, delay, expires_at, expires_in,
                  key, dedup, dedup_until, correlation, parent, max_attempts, timeout, at_most_once, tags, metadata,
                  created_by)) sent;
  EXCEPTION WHEN unique_violation THEN
    RETURN false;
  END;
  -- Looked for after the insert: what was hot then, or is finished since, is met here (S15, S50).
  IF {s}.is_any_finished(p_id) THEN
    DELETE FROM {s}.job WHERE id = ANY (p_id);
    RETURN false;
  END IF;
  INSERT INTO {s}.delta (ord, queue, tenant, task, delayed_at, delayed, ready, head_key, head_id)
  SELECT coalesce(min(n) FILTER (WHERE due <= p_now), min(n)), queue, tenant, task,  -- a tenant is ready with its first
         min(p_now) FILTER (WHERE due > p_now), count(*) FILTER (WHERE due > p_now), count(*) FILTER (WHERE due <= p_now),
         min(sort_key) FILTER (WHERE due <= p_now), (array_agg(id ORDER BY sort_key, id) FILTER (WHERE due <= p_now))[1]
  FROM (SELECT u.*, d.due, d.due - coalesce(u.priority, p_priority[1]) * {priority_step} AS sort_key
        FROM unnest(p_id, p_tenant, p_queue, p_task, p_priority, p_run_at, p_delay) WITH ORDINALITY
             u (id, tenant, queue, task, priority, run_at, delay, n)
        CROSS JOIN LATERAL (SELECT greatest(coalesce(u.run_at, p_now + u.delay), p_now) AS due) d) sent
  GROUP BY queue, tenant, task;
  RETURN true;
END $$;

-- The whole of it where nothing can refuse it: give the instant at which the jobs came in, or NULL.
CREATE OR REPLACE FUNCTION {s}.enqueue(p_now bigint, p_known text[], p_keys int, p_dedups int, p_fingerprint bytea[],
  p_id uuid[], p_tenant text[], p_queue text[], p_task text[],
  p_payload bytea[], p_checksum bigint[], p_version int[], p_priority int[], p_run_at bigint[], p_delay bigint[],
  p_expires_at bigint[], p_expires_in bigint[], p_key text[], p_dedup text[], p_dedup_until text[],
  p_correlation text[], p_parent uuid[], p_max_attempts int[], p_timeout bigint[], p_at_most_once boolean[],
  p_tags text[], p_metadata bytea[], p_created_by text[])
RETURNS bigint LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_now bigint := {s}.now_or(p_now);
  v_most int := cardinality(p_id);
  v_keys record; v_dedups record;
  is_in boolean;
BEGIN
  p_tenant := {s}.for_each(p_tenant, v_most);
  p_queue := {s}.for_each(p_queue, v_most);
  p_task := {s}.for_each(p_task, v_most);
  IF NOT {s}.is_free(v_now, p_known, p_tenant, p_queue, p_task) THEN
    RETURN NULL;
  END IF;
  is_in := true;
  IF p_keys > 0 THEN
    v_keys := {s}.take_keys(p_tenant, p_key, p_id, p_fingerprint);
    is_in := coalesce(cardinality(v_keys.keys), 0) = p_keys;
  END IF;
  IF is_in AND p_dedups > 0 THEN
    v_dedups := {s}.take_dedup(p_tenant, p_task, p_dedup, p_id);
    is_in := coalesce(cardinality(v_dedups.keys), 0) = p_dedups;
  END IF;
  IF is_in THEN
    is_in := {s}.bring_in(v_now, p_id, p_tenant, p_queue, p_task, p_payload, p_checksum, p_version, p_priority, p_run_at,
                          p_delay, p_expires_at, p_expires_in, p_key, p_dedup, p_dedup_until, p_correlation, p_parent,
                          p_max_attempts, p_timeout, p_at_most_once, p_tags, p_metadata, p_created_by);
  END IF;
  IF is_in THEN
    RETURN v_now;
  END IF;
  IF p_keys > 0 THEN
    PERFORM {s}.leave_keys(v_keys.tenants, v_keys.keys);
  END IF;
  IF p_dedups > 0 AND v_dedups IS NOT NULL THEN
    PERFORM {s}.leave_dedup(v_dedups.tenants, v_dedups.tasks, v_dedups.keys);
  END IF;
  RETURN NULL;
END $$;

-- What bears on each of these jobs, in their order.
CREATE OR REPLACE FUNCTION {s}.standing(p_now bigint, p_known text[], p_id uuid[], p_tenant text[], p_queue text[],
  p_task text[])
RETURNS TABLE (at bigint, owner text, is_known boolean, closed text, most int, on_full text, waiting bigint,
  max_waiting int, queue_waiting bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_now bigint := {s}.now_or(p_now);
BEGIN
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT * FROM unnest(p_id, p_tenant, p_queue, p_task) WITH ORDINALITY u (id, tenant, queue, task, n)
  ), place AS MATERIALIZED (
    SELECT d.queue, d.tenant, d.task, l.waiting AS most, l.on_full, t.max_waiting,
           d.tenant <> ALL (p_known) OR {s}.is_declared(d.tenant) AS is_known,
           {s}.closed(v_now, d.queue, d.tenant, d.task) AS closed,
           CASE WHEN l.waiting IS NOT NULL THEN {s}.waiting_of(d.queue, d.tenant) ELSE 0 END AS waiting,
           CASE WHEN t.max_waiting IS NOT NULL THEN {s}.queue_waiting(d.queue) ELSE 0 END AS queue_waiting
    FROM (SELECT DISTINCT i.queue, i.tenant, i.task FROM item i) d
    LEFT JOIN LATERAL {s}.limits_of(v_now, d.queue, d.tenant) l ON true
    LEFT JOIN LATERAL {s}.term_of(v_now, 'queue', d.queue) t ON true
  )
  SELECT v_now,
         coalesce((SELECT j.tenant FROM {s}.job j WHERE j.id = i.id),
                  (SELECT h.tenant FROM {s}.history h WHERE h.id = i.id LIMIT 1),
                  (SELECT x.tenant FROM {s}.dead x WHERE x.id = i.id)),
         p.is_known, p.closed, p.most, p.on_full, p.waiting, p.max_waiting, p.queue_waiting
  FROM item i JOIN place p ON (p.queue, p.tenant, p.task) = (i.queue, i.tenant, i.task)
  ORDER BY i.n;
END $$;

-- Fold some of a queue's deltas if many are waiting and nobody holds its mutex; for enqueues that no worker serves. As
-- many as a claim does: of several for one strand only the sum is written.
CREATE OR REPLACE FUNCTION {s}.relieve(p_now bigint, p_queue text) RETURNS int LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  q {s}.queue; step record;
BEGIN
  IF NOT EXISTS (SELECT FROM {s}.delta WHERE queue = p_queue AND xid >= {s}.unfolded_since(p_queue)
                 ORDER BY queue, xid, ord OFFSET 4999 LIMIT 1) OR NOT {s}.try_mutex(p_queue) THEN
    RETURN 0;
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  q := {s}.queue_row(p_queue);
  SELECT * INTO step FROM {s}.fold_some(q, 5000);
  PERFORM {s}.write_queue(step.q);
  RETURN step.folded;
END $$;
