-- Claim many jobs at once, where almost nothing can hold anybody back: the same jobs in the same order as `claim_stepwise`
-- would take them one by one, by a few statements for all of them.
--
-- Fairness (S41): a tenant with virtual time `vt` and stride `s` is served at vt, vt + s, vt + 2s, ...; over all tenants the
-- lowest of these times come first. `choose_fairly` finds them by water filling. An example, for 4 jobs and three tenants of
-- stride 10 with vt A 0, B 5, C 40:
--
--   How high does the water rise if 4 jobs are poured over the lowest tenants? Over A alone to 40, over A and B to 22.5,
--   over all three to 28.3. The lowest is the true level, 22.5: with too few tenants the water rises higher because less of
--   it finds room, with too many because a tenant above the level counts as if it gave some back. Rounded up to 23.
--   Below 23, A can be served at 0, 10, 20 and B at 5, 15; C is not reached. In order: A 0, B 5, A 10, B 15, A 20.
--   The first 4 are chosen. Then A has vt 20 and B 25. The fifth, A 20, is the next head of A's strand.
--
-- Of each tenant one job more than it can serve is read, so that its next head is known. Running limits are stored: a tenant
-- without a free slot is parked if it would have come before the last one served.
--
-- Parameters: `p_limit` jobs at most, of which those behind the first `p_sure` are claimed ahead; `parked`: how many the request
-- has parked so far, and then with those parked here; `p_stride` and `p_limits`: of tenants without their own, `p_has_strides`
-- and `p_has_limits`: some of the next have their own.
-- Index: tenant_queue_order, tenant_queue_name, strand_open, strand_parked_tenant, job_ready, job_running, primary keys of
-- hold and effective_rule. Locks: the caller's queue lock; rows of running jobs, SKIP LOCKED.

-- Choose in rounds until `p_limit` jobs are chosen or nothing is left, and write what becomes of tenant queues and strands.
-- A round in which a job has expired, a tenant or task is paused, rated or gated, or too many would be parked is dropped
-- before anything of it is written; `claim` goes on stepwise. A round that meets a careful job in the part ahead is chosen
-- again, up to that job; the step after it meets that job first and ends the claim (S68).
DROP FUNCTION IF EXISTS {schema}.claim_batch({schema}.queue, bigint, int, int);
CREATE OR REPLACE FUNCTION {schema}.claim_batch(
  INOUT q {schema}.queue, p_now bigint, p_limit int, p_sure int, INOUT parked int, OUT tids tid[], OUT capped boolean[],
  OUT has_started boolean
) LANGUAGE plpgsql AS $$
DECLARE
  has_tenant_rules boolean := EXISTS (SELECT 1 FROM {schema}.effective_rule WHERE kind = 'tenant' AND name <> '*');
  own record;         -- which rules of their own the next tenants have
  has_holds boolean := EXISTS (SELECT 1 FROM {schema}.hold WHERE kind IN ('tenant', 'task') AND verb = 'paused'
    AND until > p_now);
  has_open boolean := {schema}.is_any_breaker_open();
  v_stride bigint := {schema}.stride_of(p_now, '*');
  v_limits {schema}.effective_rule;  -- of every tenant that has none of its own
  is_plain boolean;   -- none of the next tenants has a limit
  v_left int;
  v_careful int;      -- the place in the round of the first careful job of the part ahead
  is_dropped boolean; -- the round cannot be done at once
  chosen {schema}.batch_choice;
  v_parked text[];
  v_owners text[] := '{}';  -- of the jobs chosen so far, which do not run yet
BEGIN
  SELECT * INTO v_limits FROM {schema}.limits_of(p_now, q.name, '*');
  SELECT false AS strides, false AS limits INTO own;
  tids := '{}';
  capped := '{}';
  has_started := false;
  WHILE cardinality(tids) < p_limit LOOP
    v_left := p_limit - cardinality(tids);
    IF has_tenant_rules THEN
      SELECT * INTO own FROM {schema}.rules_of_next(q, v_left);
    END IF;
    is_plain := NOT own.limits AND v_limits.running IS NULL;
    IF NOT is_plain THEN
      chosen := {schema}.choose_fairly(q, p_now, v_left, own.strides, v_stride, own.limits, v_limits, v_owners);
    ELSIF EXISTS (SELECT 1 FROM {schema}.tenant_queue WHERE queue = q.name AND state = {open} AND vt >= q.vt_scan_from
                  ORDER BY queue, vt, ready_since LIMIT 1 OFFSET 1) THEN
      chosen := {schema}.choose_one_each(q, p_now, v_left, own.strides, v_stride);
    ELSE
      chosen := {schema}.choose_one_tenant(q, p_now, v_left, own.strides, v_stride);
    END IF;
    IF is_plain AND chosen.tenant_queues IS NULL THEN
      chosen := {schema}.choose_fairly(q, p_now, v_left, own.strides, v_stride, own.limits, v_limits, v_owners);
    END IF;
    EXIT WHEN chosen.tenant_queues IS NULL;
    IF p_sure < p_limit THEN
      v_careful := {schema}.first_careful(chosen.jobs, greatest(p_sure - cardinality(tids), 0) + 1);
      IF v_careful IS NOT NULL THEN
        p_limit := cardinality(tids) + v_careful - 1;
        CONTINUE;
      END IF;
    END IF;
    v_parked := array(SELECT tenant FROM unnest(chosen.tenants, chosen.parks) AS u (tenant, is_parked) WHERE is_parked);
    is_dropped := parked + cardinality(v_parked) >= {max_parked}
      OR (chosen.jobs IS NULL AND cardinality(v_parked) = 0 AND true = ALL (chosen.opens))  -- a round must change something
      OR coalesce(chosen.expires_at <= p_now OR chosen.has_rate, false)
      OR EXISTS (SELECT 1 FROM unnest(chosen.tasks) AS met (task), {schema}.effective_rule
                 WHERE kind = 'task' AND name = met.task AND queue = '' AND since <= p_now AND p_now < until
                   AND (gate IS NOT NULL OR budget IS NOT NULL OR rate_every IS NOT NULL OR (has_open AND breaker IS NOT NULL)))
      OR (has_holds AND EXISTS (
            SELECT 1 FROM (SELECT 'task' AS kind, unnest(chosen.tasks) AS name
                           UNION ALL SELECT 'tenant', unnest(chosen.tenants)) AS met, {schema}.hold
            WHERE hold.kind = met.kind AND hold.name = met.name AND verb = 'paused' AND until > p_now));
    EXIT WHEN is_dropped;
    UPDATE {schema}.strand SET ver = q.ver, head_key = new.key, head_id = new.id,
                               state = CASE WHEN new.id IS NULL THEN {no_ready} ELSE {open} END
    FROM unnest(chosen.strands, chosen.keys, chosen.ids) AS new (tid, key, id) WHERE strand.ctid = new.tid;
    UPDATE {schema}.tenant_queue SET ver = q.ver, vt = new.vt, ready = ready - new.served,
                                     head_key = coalesce(new.low_key, head_key),
                                     state = CASE WHEN new.is_parked THEN {parked} WHEN new.is_open THEN {open}
                                                  WHEN parked_strands.is_any THEN {all_parked} ELSE {no_ready} END,
                                     ready_since = CASE WHEN new.is_open OR parked_strands.is_any THEN ready_since ELSE 0 END
    FROM unnest(chosen.tenant_queues, chosen.tenants, chosen.new_vts, chosen.served, chosen.opens, chosen.head_keys,
                chosen.parks)
           AS new (tid, tenant, vt, served, is_open, low_key, is_parked),
         LATERAL (SELECT NOT new.is_open AND EXISTS (
           SELECT 1 FROM {schema}.strand s WHERE s.queue = q.name AND s.tenant = new.tenant
             AND s.state = {parked}) AS is_any) AS parked_strands
    WHERE tenant_queue.ctid = new.tid AND (new.served > 0 OR NOT new.is_open OR new.is_parked);
    IF cardinality(v_parked) > 0 THEN
      PERFORM {schema}.park_at_limit(p_now, q, v_parked);
      parked := parked + cardinality(v_parked);
    END IF;
    IF chosen.jobs IS NOT NULL THEN
      tids := tids || chosen.jobs;
      capped := capped || chosen.capped;
      v_owners := v_owners || chosen.owners;
      has_started := has_started OR chosen.is_started;
      q.vt_scan_from := greatest(q.vt_scan_from, chosen.last_vt);
      q.vt_floor := greatest(q.vt_floor, chosen.last_vt);
      q.waiting := q.waiting - cardinality(chosen.jobs);
    END IF;
  END LOOP;
END $$;

-- The place of the first job, from a place on, that may not be claimed ahead; NULL if all may. Read by location only where a
-- claim goes ahead: one boolean more in every way of choosing makes all large claims some 5 % slower.
CREATE OR REPLACE FUNCTION {schema}.first_careful(p_tids tid[], p_from int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_careful tid[] := array(
    SELECT ctid FROM {schema}.job WHERE ctid = any(p_tids[p_from:])
      AND {schema}.is_careful(is_suspect, at_most_once, failures, max_attempts, dedup_key, dedup_until));
BEGIN
  IF cardinality(v_careful) = 0 THEN
    RETURN NULL;
  END IF;
  RETURN (SELECT min(place) FROM unnest(p_tids) WITH ORDINALITY AS chosen (tid, place)
          WHERE place >= p_from AND tid = any(v_careful));
END $$;

-- Choose the next jobs of a queue, at most `p_limit`, as in the example above, and say what becomes of the tenant queues and
-- strands that they are from. `p_owners`: tenants of jobs chosen in earlier rounds, which take slots and do not run yet.
CREATE OR REPLACE FUNCTION {schema}.choose_fairly(
  q {schema}.queue, p_now bigint, p_limit int, p_has_strides boolean, p_stride bigint, p_has_limits boolean,
  p_limits {schema}.effective_rule, p_owners text[]
) RETURNS {schema}.batch_choice LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  chosen {schema}.batch_choice;
BEGIN
  -- The tenants that may be reached: each takes at least one job, so no more than `p_limit` of them.
  -- Rules of their own are read only where there are any: even an empty join of a function costs 20 µs a row.
  WITH candidates AS MATERIALIZED (
    SELECT ctid AS tid, tenant, vt, ready_since, head_key AS low_key,
           CASE WHEN p_has_strides THEN {schema}.stride_of(p_now, tenant) ELSE p_stride END AS stride,
           CASE WHEN p_has_limits THEN (SELECT l FROM {schema}.limits_of(p_now, q.name, tenant) l) ELSE p_limits END AS own
    FROM {schema}.tenant_queue WHERE queue = q.name AND state = {open} AND vt >= q.vt_scan_from
    ORDER BY queue, vt, ready_since LIMIT p_limit),
  -- How high the water rises: the lowest level that any number of the lowest tenants would reach. Sums of fractions may come
  -- out a little above a whole number, which must not be rounded up to the next one: hence 0.001 less.
  level AS MATERIALIZED (
    SELECT q.vt_scan_from + ceil(min(water) - 0.001)::bigint AS top FROM (
      SELECT (p_limit + sum((vt - q.vt_scan_from) / stride::float8) OVER sofar) / sum(1 / stride::float8) OVER sofar AS water
      FROM candidates WINDOW sofar AS (ORDER BY vt, ready_since ROWS UNBOUNDED PRECEDING)) AS levels),
  -- How many jobs each tenant below the level can serve, and how many slots its running limit leaves.
  with_slots AS MATERIALIZED (
    SELECT candidates.*, least((top - vt - 1) / stride + 1, p_limit)::int AS max_jobs,
           (own).running AS running, (own).rate_every IS NOT NULL AS has_rate,
           CASE WHEN (own).running IS NOT NULL THEN (own).running - (
             SELECT count(*) FROM (SELECT 1 FROM {schema}.job WHERE state = {running}
                                     AND (queue, tenant) BETWEEN (q.name, candidates.tenant) AND (q.name, candidates.tenant)
                                   LIMIT (candidates.own).running) AS claims)::int
             - (SELECT count(*) FROM unnest(p_owners) AS owner WHERE owner = candidates.tenant)::int END AS free_slots
    FROM candidates, level WHERE vt < top),
  -- How many jobs each tenant may serve.
  wanted AS MATERIALIZED (
    SELECT tid, tenant, vt, ready_since, low_key, stride, has_rate, running, free_slots,
           least(max_jobs, CASE WHEN free_slots < 0 THEN 0 ELSE free_slots END) AS max_jobs
    FROM with_slots),
  -- Its open strands in the order of their heads; one more than can be served, to know what is left.
  strands AS MATERIALIZED (
    SELECT w.tid AS tenant_queue, w.tenant, w.vt, w.ready_since, w.stride, w.max_jobs, w.free_slots, w.has_rate, w.running,
           s.tid, s.task, s.head_key, s.head_id,
           row_number() OVER (PARTITION BY w.tid ORDER BY s.head_key, s.head_id) AS place
    FROM wanted w LEFT JOIN LATERAL (
      SELECT ctid AS tid, task, head_key, head_id FROM {schema}.strand
      WHERE queue = q.name AND tenant = w.tenant AND state = {open} AND head_key >= w.low_key
      ORDER BY queue, tenant, head_key, head_id LIMIT w.max_jobs + 1) s ON true),
  -- The first jobs of these strands, one more than can be served. `nth`: the job's place among all jobs of its tenant,
  -- from 0. Rows are compared, because no other index than job_ready can answer that.
  jobs AS MATERIALIZED (
    SELECT s.*, j.*, row_number() OVER (PARTITION BY s.tenant_queue ORDER BY j.sort_key, j.id) - 1 AS nth
    FROM strands s LEFT JOIN LATERAL (
      SELECT ctid AS job, sort_key, id, expires_at, dedup_key IS NOT NULL AND dedup_until = 'started' AS is_started
      FROM {schema}.job
      WHERE (queue, tenant, task, sort_key, id) >= (q.name, s.tenant, s.task, s.head_key, s.head_id)
        AND (queue, tenant, task) <= (q.name, s.tenant, s.task) AND state = {ready}
      ORDER BY queue, tenant, task, sort_key, id LIMIT s.max_jobs + 1) j ON s.place <= s.max_jobs),
  -- All of them in the fair order: by the virtual time at which each would be served.
  ranked AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY job IS NULL OR nth >= max_jobs, vt + nth * stride, ready_since) AS rank
      FROM jobs),
  -- Which are served. Beyond the last candidate other tenants may come first, if a candidate had no free slot.
  picked AS MATERIALIZED (
    SELECT *, job IS NOT NULL AND nth < max_jobs AND rank <= p_limit
              AND ((SELECT count(*) < p_limit FROM candidates) OR (vt + nth * stride, ready_since) <= (
                    SELECT vt, ready_since FROM candidates ORDER BY vt DESC, ready_since DESC LIMIT 1)) AS is_served
    FROM ranked),
  -- The last one served.
  last AS MATERIALIZED (
    SELECT vt + nth * stride AS vt, ready_since FROM picked WHERE is_served ORDER BY rank DESC LIMIT 1),
  -- What becomes of each tenant: its new vt, and whether anything is left.
  moved AS MATERIALIZED (
    SELECT tenant_queue, tenant, min(vt) + count(*) FILTER (WHERE is_served) * min(stride) AS vt,
           (count(*) FILTER (WHERE is_served))::int AS served, min(free_slots) AS free_slots,
             min(ready_since) AS ready_since,
           bool_or((job IS NOT NULL AND NOT is_served) OR place > max_jobs) AS is_open,
           least(min(sort_key) FILTER (WHERE NOT is_served), min(head_key) FILTER (WHERE place > max_jobs)) AS low_key
    FROM picked GROUP BY tenant_queue, tenant),
  -- What becomes of each strand: its next head.
  next_heads AS MATERIALIZED (
    SELECT tid, min(sort_key) FILTER (WHERE NOT is_served) AS head_key,
           (array_agg(id ORDER BY nth) FILTER (WHERE NOT is_served))[1] AS head_id, bool_or(is_served) AS is_touched,
           coalesce(bool_or(id = head_id), false) AS has_head
    FROM picked WHERE place <= max_jobs AND tid IS NOT NULL GROUP BY tid),
  -- The same as arrays: the jobs served,
  taken AS (
    SELECT array_agg(job ORDER BY rank) AS jobs, array_agg(running IS NOT NULL ORDER BY rank) AS capped,
           array_agg(tenant ORDER BY rank) AS owners,
           min(expires_at) AS expires_at, array_agg(DISTINCT task) AS tasks, bool_or(is_started) AS is_started,
           bool_or(has_rate) AS has_rate
    FROM picked WHERE is_served),
  -- the tenants; one is parked if it is out of slots and would have come before the last one served,
  after AS (
    SELECT array_agg(tenant_queue) AS tenant_queues, array_agg(tenant) AS tenants, array_agg(vt) AS vts,
           array_agg(served) AS served, array_agg(is_open) AS opens, array_agg(low_key) AS low_keys,
           array_agg(is_open AND coalesce(free_slots <= served, false) AND coalesce(
             (vt, ready_since) < (SELECT vt, ready_since FROM last), true)) AS parks
    FROM moved),
  -- and the strands. A head whose job is gone is corrected although nothing was served: `low_key`, above, is that of the
  -- first job that is there, and a strand that is left below it would never be met again.
  heads AS (
    SELECT array_agg(tid) AS strands, array_agg(head_key) AS keys, array_agg(head_id) AS ids
    FROM next_heads WHERE is_touched OR head_id IS NULL OR NOT has_head)
  SELECT taken.jobs, taken.capped, taken.owners, (SELECT vt FROM last), taken.expires_at, taken.tasks, taken.is_started,
         taken.has_rate, after.tenant_queues, after.tenants, after.vts, after.served, after.opens, after.low_keys,
         after.parks, heads.strands, heads.keys, heads.ids
  INTO chosen FROM taken, after, heads;
  RETURN chosen;
END $$;

-- Choose the jobs of the only ready tenant, while it has one open strand: as they come. Only where nothing limits anybody;
-- NULL where it is not so simple.
CREATE OR REPLACE FUNCTION {schema}.choose_one_tenant(
  q {schema}.queue, p_now bigint, p_limit int, p_has_strides boolean, p_stride bigint
) RETURNS {schema}.batch_choice LANGUAGE plpgsql AS $$
DECLARE
  t record;
  s record;
  v_stride bigint := p_stride;
  v_served int;
  chosen {schema}.batch_choice;
BEGIN
  SELECT ctid AS tid, tenant, vt, head_key INTO t FROM {schema}.tenant_queue
  WHERE queue = q.name AND state = {open} AND vt >= q.vt_scan_from ORDER BY queue, vt, ready_since LIMIT 1;
  IF NOT found THEN
    RETURN NULL;
  END IF;
  SELECT array_agg(tid) AS tids, array_agg(task) AS tasks, array_agg(head_key) AS keys, array_agg(head_id) AS ids INTO s
  FROM (SELECT ctid AS tid, task, head_key, head_id FROM {schema}.strand
        WHERE queue = q.name AND tenant = t.tenant AND state = {open} AND head_key >= t.head_key
        ORDER BY queue, tenant, head_key, head_id LIMIT 2) AS two;
  IF cardinality(s.tids) IS DISTINCT FROM 1 THEN
    RETURN NULL;
  END IF;
  IF p_has_strides THEN
    v_stride := {schema}.stride_of(p_now, t.tenant);
  END IF;
  SELECT array_agg(tid) FILTER (WHERE nth <= p_limit), min(expires_at) FILTER (WHERE nth <= p_limit),
         bool_or(is_started) FILTER (WHERE nth <= p_limit), ARRAY[min(sort_key) FILTER (WHERE nth > p_limit)],
         array_agg(id) FILTER (WHERE nth > p_limit)
  INTO chosen.jobs, chosen.expires_at, chosen.is_started, chosen.keys, chosen.ids
  FROM (SELECT *, row_number() OVER () AS nth FROM ( -- number the sorted rows: a plan may sort after numbering
          SELECT ctid AS tid, sort_key, id, expires_at, dedup_key IS NOT NULL AND dedup_until = 'started' AS is_started
          FROM {schema}.job
          WHERE (queue, tenant, task, sort_key, id) >= (q.name, t.tenant, s.tasks[1], s.keys[1], s.ids[1])
            AND (queue, tenant, task) <= (q.name, t.tenant, s.tasks[1]) AND state = {ready}
          ORDER BY queue, tenant, task, sort_key, id LIMIT p_limit + 1) AS first) AS numbered;
  IF chosen.jobs IS NULL THEN
    RETURN NULL;
  END IF;
  v_served := cardinality(chosen.jobs);
  chosen.capped := array_fill(false, ARRAY[v_served]);
  chosen.owners := array_fill(t.tenant, ARRAY[v_served]);
  chosen.last_vt := t.vt + (v_served - 1) * v_stride;
  chosen.tasks := s.tasks;
  chosen.tenant_queues := ARRAY[t.tid];
  chosen.tenants := ARRAY[t.tenant];
  chosen.new_vts := ARRAY[t.vt + v_served * v_stride];
  chosen.served := ARRAY[v_served];
  chosen.opens := ARRAY[chosen.ids IS NOT NULL];
  chosen.head_keys := chosen.keys;
  chosen.parks := ARRAY[false];
  chosen.strands := s.tids;
  chosen.ids := coalesce(chosen.ids, ARRAY[NULL::uuid]);
  RETURN chosen;
END $$;

-- Choose one job of each tenant, where `choose_fairly` would do that: there are as many ready tenants as jobs are wanted, and
-- nobody's second job comes before another's first. Needs no level and no ranks, which halves what choosing costs. NULL where
-- it is not so, or the first job of a strand is not its head.
CREATE OR REPLACE FUNCTION {schema}.choose_one_each(
  q {schema}.queue, p_now bigint, p_limit int, p_has_strides boolean, p_stride bigint
) RETURNS {schema}.batch_choice LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  are_heads boolean;
  chosen {schema}.batch_choice;
BEGIN
  WITH candidates AS MATERIALIZED (
    SELECT ctid AS tid, tenant, vt, ready_since, head_key AS low_key,
           CASE WHEN p_has_strides THEN {schema}.stride_of(p_now, tenant) ELSE p_stride END AS stride
    FROM {schema}.tenant_queue WHERE queue = q.name AND state = {open} AND vt >= q.vt_scan_from
    ORDER BY queue, vt, ready_since LIMIT p_limit),
  last AS MATERIALIZED (SELECT vt, ready_since FROM candidates ORDER BY vt DESC, ready_since DESC LIMIT 1),
  met AS MATERIALIZED (
    SELECT candidates.tid AS tenant_queue, candidates.tenant, candidates.vt,
           candidates.vt + candidates.stride AS new_vt, s.tid AS strand, s.task, j.*,
           coalesce(j.id = s.head_id, false) AS is_head, least(j.next_key, s.other_key) AS low_key,
           coalesce(j.next_key, s.other_key) IS NOT NULL AS is_open
    FROM candidates LEFT JOIN LATERAL (
      SELECT *, lead(head_key) OVER () AS other_key FROM (
        SELECT ctid AS tid, task, head_key, head_id FROM {schema}.strand
        WHERE queue = q.name AND tenant = candidates.tenant AND state = {open} AND head_key >= candidates.low_key
        ORDER BY queue, tenant, head_key, head_id LIMIT 2) AS two LIMIT 1) AS s ON true
    LEFT JOIN LATERAL (
      SELECT *, lead(sort_key) OVER () AS next_key, lead(id) OVER () AS next_id FROM (
        SELECT ctid AS job, sort_key, id, expires_at, dedup_key IS NOT NULL AND dedup_until = 'started' AS is_started
        FROM {schema}.job
        WHERE (queue, tenant, task, sort_key, id) >= (q.name, candidates.tenant, s.task, s.head_key, s.head_id)
          AND (queue, tenant, task) <= (q.name, candidates.tenant, s.task) AND state = {ready}
        ORDER BY queue, tenant, task, sort_key, id LIMIT 2) AS two LIMIT 1) AS j ON true
    WHERE p_limit = (SELECT count(*) FROM candidates) AND NOT EXISTS (
      SELECT 1 FROM candidates, last
      WHERE (candidates.vt + candidates.stride, candidates.ready_since) < (last.vt, last.ready_since)))
  SELECT bool_and(is_head), array_agg(job), array_agg(tenant), max(vt), min(expires_at),
         (SELECT array_agg(task) FROM (SELECT DISTINCT task FROM met) AS kinds), bool_or(is_started),
         array_agg(tenant_queue), array_agg(new_vt), array_agg(is_open), array_agg(low_key), array_agg(strand),
         array_agg(next_key), array_agg(next_id)
  INTO are_heads, chosen.jobs, chosen.owners, chosen.last_vt, chosen.expires_at, chosen.tasks, chosen.is_started,
       chosen.tenant_queues,
       chosen.new_vts, chosen.opens, chosen.head_keys, chosen.strands, chosen.keys, chosen.ids
  FROM met;
  IF are_heads IS NOT TRUE THEN
    RETURN NULL;
  END IF;
  chosen.tenants := chosen.owners;
  chosen.served := array_fill(1, ARRAY[p_limit]);
  chosen.capped := array_fill(false, ARRAY[p_limit]);
  chosen.parks := chosen.capped;
  RETURN chosen;
END $$;

-- Park tenants that are out of slots, and let the ends of their running claims say so.
CREATE OR REPLACE FUNCTION {schema}.park_at_limit(p_now bigint, q {schema}.queue, p_tenants text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_tenant text;
  v_tid tid;
BEGIN
  FOREACH v_tenant IN ARRAY p_tenants LOOP
    SELECT ctid INTO v_tid FROM {schema}.tenant_queue WHERE queue = q.name AND tenant = v_tenant
    ORDER BY queue, tenant, ver DESC LIMIT 1;
    UPDATE {schema}.tenant_queue SET parked = 'running_limit', subject = 'tenant ' || v_tenant, parked_vt = vt,
      parked_since = ready_since,
                        parked_until = {schema}.limits_end(p_now, q.name, v_tenant)
    WHERE ctid = v_tid;
    PERFORM {schema}.flag_capped_claims(q.name, v_tenant);
  END LOOP;
END $$;

-- Whether any of the next tenants has a stride, or limits in this queue, of its own; of as many as any way of choosing reads.
-- Parked tenants are not among them, so one at its limit costs the others nothing.
CREATE OR REPLACE FUNCTION {schema}.rules_of_next(q {schema}.queue, p_limit int, OUT strides boolean, OUT limits boolean)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT coalesce(bool_or(own.queue = ''), false), coalesce(bool_or(own.queue IN (q.name, '*')), false)
  INTO strides, limits
  FROM (SELECT tenant FROM {schema}.tenant_queue WHERE queue = q.name AND state = {open} AND vt >= q.vt_scan_from
        ORDER BY queue, vt, ready_since LIMIT p_limit) AS next,
       LATERAL (SELECT queue FROM {schema}.effective_rule WHERE kind = 'tenant' AND name = next.tenant OFFSET 0) AS own;
END $$;

-- Whether `claim_batch` may try: a queue that counts jobs, without a rate of its own or of all its tenants.
CREATE OR REPLACE FUNCTION {schema}.can_claim_batch(p_now bigint, p_queue text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN NOT EXISTS (SELECT 1 FROM {schema}.rule_of(p_now, 'queue', p_queue) WHERE rate_every IS NOT NULL OR cost = 'seconds')
    AND NOT EXISTS (SELECT 1 FROM {schema}.limits_of(p_now, p_queue, '*') WHERE rate_every IS NOT NULL);
END $$;
