-- Renew (S37): extend leases, store progress and metadata, charge the time beyond what is charged so far (S41). A row that
-- somebody is settling is skipped: neither extended nor named. Commits without waiting for the disk: a renewal lost
-- in a crash only ends the lease earlier.
-- Parameters: `p_metadata` is NULL where no handler has changed its job's; workers of the version before do not send it. `stale` and `asked` are positions in the request, because a job may be named with two fences.
-- Index: job_id. Locks: the rows, SKIP LOCKED, ascending by id.

DROP FUNCTION IF EXISTS {schema}.renew(bigint, text, text, bigint, uuid[], bigint[], bytea[]);
DROP FUNCTION IF EXISTS {schema}.extend_leases(bigint, tid[], bytea[], bigint[]);

DROP FUNCTION IF EXISTS {schema}.renew(bigint, text, text, bigint, uuid[], bigint[], bytea[], bytea[]);

CREATE OR REPLACE FUNCTION {schema}.renew(p_now bigint, p_worker text, p_tenant text, p_lease bigint, p_id uuid[],
  p_fence bigint[], p_progress bytea[], p_metadata bytea[] DEFAULT NULL, p_spent bigint[] DEFAULT NULL,
  OUT lease_until bigint, OUT stale bigint[], OUT asked bigint[])
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_now bigint := {schema}.now_or(p_now); v_tid tid[]; v_progress bytea[]; v_metadata bytea[];
  v_charged bigint[];
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  lease_until := v_now + p_lease;
  IF p_spent IS NOT NULL THEN
    PERFORM {schema}.report_budgets(v_now, p_tenant, array_agg(u.id), array_agg(u.fence), array_agg(u.spent), 'renewed')
    FROM unnest(p_id, p_fence, p_spent) u (id, fence, spent) WHERE u.spent > 0;
  END IF;
  WITH held AS MATERIALIZED (
    SELECT a.n, a.id, a.progress, a.metadata, h.*, v_now - coalesce(h.started_at, v_now) AS seen
    FROM (SELECT * FROM unnest(p_id, p_fence, p_progress, p_metadata) WITH ORDINALITY u (id, fence, progress, metadata, n)
          ORDER BY u.id OFFSET 0) a
    CROSS JOIN LATERAL (
      SELECT j.ctid AS tid, j.queue, j.tenant, j.task, j.started_at, j.charged, j.is_cancel_asked
      FROM {schema}.job j
      WHERE j.id BETWEEN a.id AND a.id AND j.fence = a.fence AND j.worker = p_worker
        AND (p_tenant IS NULL OR j.tenant = p_tenant)
      ORDER BY j.id LIMIT 1 FOR UPDATE SKIP LOCKED) h
  ), beyond AS (
    INSERT INTO {schema}.delta (ord, queue, tenant, task, vt)
    SELECT h.n, h.queue, h.tenant, h.task,
           {schema}.charge({schema}.stride_of(v_now, h.tenant), h.seen)
             - {schema}.charge({schema}.stride_of(v_now, h.tenant), h.charged)
    FROM held h WHERE h.seen > h.charged
  )
  SELECT array_agg(h.tid), array_agg(h.progress), CASE WHEN p_metadata IS NOT NULL THEN array_agg(h.metadata) END,
         array_agg(CASE WHEN h.charged IS NOT NULL THEN greatest(h.charged, h.seen) END),
         array_agg(h.n) FILTER (WHERE h.is_cancel_asked)
  INTO v_tid, v_progress, v_metadata, v_charged, asked
  FROM held h;
  IF v_tid IS NOT NULL THEN
    PERFORM {schema}.extend_leases(lease_until, v_tid, v_progress, v_metadata, v_charged);
  END IF;
  IF cardinality(p_id) > coalesce(cardinality(v_tid), 0) THEN
    SELECT array_agg(a.n) INTO stale FROM unnest(p_id, p_fence) WITH ORDINALITY a (id, fence, n)
    LEFT JOIN LATERAL (
      SELECT true AS is_held FROM {schema}.job j
      WHERE j.id BETWEEN a.id AND a.id AND j.fence = a.fence AND j.worker = p_worker
        AND (p_tenant IS NULL OR j.tenant = p_tenant)
      ORDER BY j.id LIMIT 1) h ON true
    WHERE h.is_held IS NULL;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION {schema}.extend_leases(p_until bigint, p_tid tid[], p_progress bytea[], p_metadata bytea[],
  p_charged bigint[])
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  UPDATE {schema}.job j SET lease_until = p_until, progress = coalesce(u.progress, j.progress),
    metadata = coalesce(u.metadata, j.metadata), charged = u.charged
  FROM unnest(p_tid, p_progress, p_metadata, p_charged) u (tid, progress, metadata, charged) WHERE j.ctid = u.tid;
END $$;
