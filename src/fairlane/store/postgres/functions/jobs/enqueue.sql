-- Enqueue (S11-S20). A batch that nothing can refuse comes in by one call of `enqueue`; for any other it returns NULL
-- and leaves nothing behind, and `BatchAdmission` decides in a transaction, with `admission_facts` and `insert_jobs`.
-- Parameters: `p_now` is NULL except in tests; the mark `new_params` is the list `SENT` of columns.py. A `shared`
-- column has one value for each job, or one for all of them.
-- Index: job_id, effective_rule_waiting, the primary keys of effective_rule, hold, policy, idempotency and dedup.
-- Locks: only appends; no queue lock, no row that others write. Waits only for an open transaction that holds the
-- same key or id, at most 5 s (S13).

-- Bring in a batch that nothing can refuse. Return the instant at which the jobs came in, or NULL.
CREATE OR REPLACE FUNCTION {schema}.enqueue(p_now bigint, p_known text[], p_keys int, p_dedups int, p_fingerprint bytea[],
  {new_params})
RETURNS bigint LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_now bigint := {schema}.now_or(p_now);
  v_count int := cardinality(p_id);
  v_keys record; v_dedups record;
  is_in boolean;
BEGIN
  p_tenant := {schema}.expand(p_tenant, v_count);
  p_queue := {schema}.expand(p_queue, v_count);
  p_task := {schema}.expand(p_task, v_count);
  IF NOT {schema}.is_unrestricted(v_now, p_known, p_tenant, p_queue, p_task) THEN
    RETURN NULL;
  END IF;
  is_in := true;
  IF p_keys > 0 THEN
    v_keys := {schema}.take_idempotency_keys(p_tenant, p_idempotency_key, p_id, p_fingerprint);
    is_in := coalesce(cardinality(v_keys.keys), 0) = p_keys;
  END IF;
  IF is_in AND p_dedups > 0 THEN
    v_dedups := {schema}.take_dedup_keys(p_tenant, p_task, p_dedup_key, p_id);
    is_in := coalesce(cardinality(v_dedups.keys), 0) = p_dedups;
  END IF;
  IF is_in THEN
    is_in := {schema}.insert_jobs(v_now, {new_args});
  END IF;
  IF is_in THEN
    RETURN v_now;
  END IF;
  IF p_keys > 0 THEN
    PERFORM {schema}.release_idempotency_keys(v_keys.tenants, v_keys.keys);
  END IF;
  IF p_dedups > 0 AND v_dedups IS NOT NULL THEN
    PERFORM {schema}.release_dedup_keys(v_dedups.tenants, v_dedups.tasks, v_dedups.keys);
  END IF;
  RETURN NULL;
END $$;

-- Write jobs, and one delta for each strand. Return false, and write nothing, if one of the ids exists already in any
-- home.
CREATE OR REPLACE FUNCTION {schema}.insert_jobs(p_now bigint, {new_params})
RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
DECLARE
  v_count int := cardinality(p_id);
BEGIN
  p_tenant := {schema}.expand(p_tenant, v_count);
  p_queue := {schema}.expand(p_queue, v_count);
  p_task := {schema}.expand(p_task, v_count);
  BEGIN
    INSERT INTO {schema}.job ({new_copied}, state, because, enqueued_at, run_at, sort_key, expires_at, tags)
    SELECT {new_values}, CASE WHEN due > p_now THEN {delayed} ELSE {ready} END, CASE WHEN due > p_now THEN 'time' END,
           p_now, due, due - coalesce(priority, p_priority[1]) * {priority_step}, coalesce(p_now + expires_in, expires_at),
           CASE WHEN tags IS NOT NULL THEN array(SELECT json_array_elements_text(tags::json)) END
    FROM (SELECT u.*, greatest(coalesce(u.run_at, p_now + u.delay), p_now) AS due
          FROM unnest({new_args}) u ({new_names})) sent;
  EXCEPTION WHEN unique_violation THEN
    RETURN false;
  END;
  -- After the insert: a job that was current then and has finished since is met here (S15, S50).
  IF {schema}.is_any_finished(p_id) THEN
    DELETE FROM {schema}.job WHERE id = ANY (p_id);
    RETURN false;
  END IF;
  INSERT INTO {schema}.delta (ord, queue, tenant, task, delayed_at, delayed, ready, head_key, head_id)
  -- The first ready job comes first: with it the tenant is ready.
  SELECT coalesce(min(n) FILTER (WHERE due <= p_now), min(n)), queue, tenant, task,
         min(p_now) FILTER (WHERE due > p_now), count(*) FILTER (WHERE due > p_now), count(*) FILTER (WHERE due <= p_now),
         min(sort_key) FILTER (WHERE due <= p_now), (array_agg(id ORDER BY sort_key, id) FILTER (WHERE due <= p_now))[1]
  FROM (SELECT u.*, d.due, d.due - coalesce(u.priority, p_priority[1]) * {priority_step} AS sort_key
        FROM unnest(p_id, p_tenant, p_queue, p_task, p_priority, p_run_at, p_delay) WITH ORDINALITY
             u (id, tenant, queue, task, priority, run_at, delay, n)
        CROSS JOIN LATERAL (SELECT greatest(coalesce(u.run_at, p_now + u.delay), p_now) AS due) d) sent
  GROUP BY queue, tenant, task;
  RETURN true;
END $$;

-- Whether nothing that stands now can refuse any of these jobs, or warn of it. `p_known`: the tenants that must be
-- declared.
CREATE OR REPLACE FUNCTION {schema}.is_unrestricted(
  p_now bigint, p_known text[], p_tenant text[], p_queue text[], p_task text[])
RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  IF EXISTS (SELECT FROM unnest(p_known) t (name) WHERE NOT {schema}.is_declared(t.name)) THEN
    RETURN false;
  END IF;
  IF EXISTS (SELECT FROM {schema}.hold) AND EXISTS (
    SELECT FROM (SELECT DISTINCT u.* FROM unnest(p_queue, p_tenant, p_task) u (queue, tenant, task)) p
    WHERE {schema}.closed_reason(p_now, p.queue, p.tenant, p.task) IS NOT NULL) THEN
    RETURN false;
  END IF;
  RETURN NOT EXISTS (SELECT FROM {schema}.effective_rule WHERE waiting IS NOT NULL OR max_waiting IS NOT NULL) OR NOT (EXISTS (
    SELECT FROM (SELECT u.queue, u.tenant, count(*) AS more FROM unnest(p_queue, p_tenant) u (queue, tenant)
                 GROUP BY u.queue, u.tenant) p
    CROSS JOIN LATERAL {schema}.limits_of(p_now, p.queue, p.tenant) l
    WHERE l.waiting IS NOT NULL AND {schema}.waiting_of(p.queue, p.tenant) + p.more > l.waiting
  ) OR EXISTS (
    SELECT FROM (SELECT u.queue, count(*) AS more FROM unnest(p_queue) u (queue) GROUP BY u.queue) p
    CROSS JOIN LATERAL {schema}.rule_of(p_now, 'queue', p.queue) t
    WHERE t.max_waiting IS NOT NULL AND {schema}.queue_waiting(p.queue) + p.more > t.max_waiting));
END $$;

-- What bears on each of these jobs, in their order, for the model to decide.
CREATE OR REPLACE FUNCTION {schema}.admission_facts(p_now bigint, p_known text[], p_id uuid[], p_tenant text[], p_queue text[],
  p_task text[])
RETURNS TABLE (at bigint, owner text, is_known boolean, closed text, max_waiting_of_tenant int, on_full text,
  waiting bigint,
  max_waiting int, queue_waiting bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_now bigint := {schema}.now_or(p_now);
BEGIN
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT * FROM unnest(p_id, p_tenant, p_queue, p_task) WITH ORDINALITY u (id, tenant, queue, task, n)
  ), place AS MATERIALIZED (
    SELECT d.queue, d.tenant, d.task, l.waiting AS max_waiting_of_tenant, l.on_full, t.max_waiting,
           d.tenant <> ALL (p_known) OR {schema}.is_declared(d.tenant) AS is_known,
           {schema}.closed_reason(v_now, d.queue, d.tenant, d.task) AS closed,
           CASE WHEN l.waiting IS NOT NULL THEN {schema}.waiting_of(d.queue, d.tenant) ELSE 0 END AS waiting,
           CASE WHEN t.max_waiting IS NOT NULL THEN {schema}.queue_waiting(d.queue) ELSE 0 END AS queue_waiting
    FROM (SELECT DISTINCT i.queue, i.tenant, i.task FROM item i) d
    LEFT JOIN LATERAL {schema}.limits_of(v_now, d.queue, d.tenant) l ON true
    LEFT JOIN LATERAL {schema}.rule_of(v_now, 'queue', d.queue) t ON true
  )
  SELECT v_now,
         coalesce((SELECT j.tenant FROM {schema}.job j WHERE j.id = i.id),
                  (SELECT h.tenant FROM {schema}.history h WHERE h.id = i.id LIMIT 1),
                  (SELECT x.tenant FROM {schema}.dead x WHERE x.id = i.id)),
         p.is_known, p.closed, p.max_waiting_of_tenant, p.on_full, p.waiting, p.max_waiting, p.queue_waiting
  FROM item i JOIN place p ON (p.queue, p.tenant, p.task) = (i.queue, i.tenant, i.task)
  ORDER BY i.n;
END $$;

-- Why this queue, tenant or task takes no new jobs; NULL if it does.
CREATE OR REPLACE FUNCTION {schema}.closed_reason(p_now bigint, p_queue text, p_tenant text, p_task text) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT kind || ' ' || name || ': ' || reason FROM {schema}.hold_of(p_now, 'closed', 'queue', p_queue)),
                  (SELECT kind || ' ' || name || ': ' || reason FROM {schema}.hold_of(p_now, 'closed', 'tenant', p_tenant)),
                  (SELECT kind || ' ' || name || ': ' || reason FROM {schema}.hold_of(p_now, 'closed', 'task', p_task)))
$$;

CREATE OR REPLACE FUNCTION {schema}.is_declared(p_tenant text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM {schema}.policy WHERE kind = 'tenant' AND name = p_tenant AND declared IS NOT NULL)
$$;

-- How many jobs of a tenant wait in a queue, deltas included.
CREATE OR REPLACE FUNCTION {schema}.waiting_of(p_queue text, p_tenant text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT t.delayed + t.ready FROM {schema}.tenant_queue t WHERE t.queue = p_queue AND t.tenant = p_tenant
                   ORDER BY t.queue, t.tenant, t.ver DESC LIMIT 1), 0)
       + coalesce((SELECT sum(d.delayed + d.ready) FROM {schema}.delta d
                   WHERE d.queue = p_queue AND d.xid >= {schema}.unapplied_since(p_queue) AND d.tenant = p_tenant), 0)
$$;

-- How many jobs wait in a queue, deltas included.
CREATE OR REPLACE FUNCTION {schema}.queue_waiting(p_queue text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT q.waiting FROM {schema}.queue q WHERE q.name = p_queue ORDER BY q.name, q.ver DESC LIMIT 1), 0)
       + coalesce((SELECT sum(d.delayed + d.ready) FROM {schema}.delta d
                   WHERE d.queue = p_queue AND d.xid >= {schema}.unapplied_since(p_queue)), 0)
$$;

-- The transaction id from which on there may be deltas that are not applied yet.
CREATE OR REPLACE FUNCTION {schema}.unapplied_since(p_queue text) RETURNS xid8 LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT CASE WHEN pg_snapshot_xmax(q.seen) <= pg_snapshot_xmax(pg_current_snapshot())
                               THEN pg_snapshot_xmin(q.seen) END
                   FROM {schema}.queue q WHERE q.name = p_queue ORDER BY q.name, q.ver DESC LIMIT 1), '0')
$$;

-- Apply some of a queue's deltas if many are waiting and nobody holds its lock: for queues that no worker serves. As
-- many as a claim does; of several deltas for one strand only the sum is written.
CREATE OR REPLACE FUNCTION {schema}.apply_backlog(p_now bigint, p_queue text) RETURNS int LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
DECLARE
  q {schema}.queue; step record;
BEGIN
  IF NOT EXISTS (SELECT FROM {schema}.delta WHERE queue = p_queue AND xid >= {schema}.unapplied_since(p_queue)
                 ORDER BY queue, xid, ord OFFSET 4999 LIMIT 1) OR NOT {schema}.try_lock_queue(p_queue) THEN
    RETURN 0;
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  q := {schema}.read_queue(p_queue);
  SELECT * INTO step FROM {schema}.apply_deltas(q, 5000);
  PERFORM {schema}.write_queue(step.q);
  RETURN step.applied;
END $$;
