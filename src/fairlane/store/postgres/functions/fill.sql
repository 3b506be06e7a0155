-- Serve many at once where almost nothing can hold anybody back: the smallest tags vt + j * stride (S41), as `serve` would
-- one after the other. Water rises over the lowest clocks to the level that `p_most` jobs can reach; of each tenant one job
-- more than that is looked at, so that its next head is known. Running limits are kept: who has no room left is parked if
-- its turn came before the last that was served. `is_stuck`: a head has expired, somebody met is paused, has a rate, or
-- too many would be parked; nothing of that round was done then, and `serve` must go on.
-- Index: turn_order, strand_open, strand_held, job_ready, job_running. Locks: the caller's mutex of the queue.
CREATE OR REPLACE FUNCTION {s}.fill(
  INOUT q {s}.queue, p_now bigint, p_most int, INOUT parked int, OUT tids tid[], OUT capped boolean[],
  OUT has_started boolean, OUT is_stuck boolean
) LANGUAGE plpgsql AS $$
DECLARE
  has_terms boolean := EXISTS (SELECT 1 FROM {s}.term WHERE kind = 'tenant' AND name <> '*');
  own record;         -- what those who are next have of their own
  has_holds boolean := EXISTS (SELECT 1 FROM {s}.hold WHERE kind IN ('tenant', 'task') AND verb = 'paused' AND until > p_now);
  v_stride bigint := {s}.stride_of(p_now, '*');
  v_limits {s}.term;  -- of every tenant that has none of its own
  is_plain boolean;   -- nobody who is next has a limit
  v_left int;
  chosen {s}.choice;
  v_held text[];
  v_owners text[] := '{}';  -- of the jobs chosen so far, which do not run yet
BEGIN
  SELECT * INTO v_limits FROM {s}.limits_of(p_now, q.name, '*');
  SELECT false AS strides, false AS limits INTO own;
  tids := '{}';
  capped := '{}';
  has_started := false;
  is_stuck := false;
  WHILE cardinality(tids) < p_most LOOP
    v_left := p_most - cardinality(tids);
    IF has_terms THEN
      SELECT * INTO own FROM {s}.own_of_next(q, v_left);
    END IF;
    is_plain := NOT own.limits AND v_limits.running IS NULL;
    IF NOT is_plain THEN
      chosen := {s}.choose(q, p_now, v_left, own.strides, v_stride, own.limits, v_limits, v_owners);
    ELSIF EXISTS (SELECT 1 FROM {s}.turn WHERE queue = q.name AND state = 1 AND vt >= q.low
                  ORDER BY queue, vt, ready_since LIMIT 1 OFFSET 1) THEN
      chosen := {s}.choose_each(q, p_now, v_left, own.strides, v_stride);
    ELSE
      chosen := {s}.choose_alone(q, p_now, v_left, own.strides, v_stride);
    END IF;
    IF is_plain AND chosen.turns IS NULL THEN
      chosen := {s}.choose(q, p_now, v_left, own.strides, v_stride, own.limits, v_limits, v_owners);
    END IF;
    EXIT WHEN chosen.turns IS NULL;
    v_held := array(SELECT tenant FROM unnest(chosen.tenants, chosen.parks) AS u (tenant, is_parked) WHERE is_parked);
    is_stuck := parked + cardinality(v_held) >= {park_most}
      OR (chosen.jobs IS NULL AND cardinality(v_held) = 0 AND true = ALL (chosen.opens))  -- a round must change something
      OR coalesce(chosen.expires_at <= p_now OR chosen.has_rate, false)
      OR EXISTS (SELECT 1 FROM unnest(chosen.tasks) AS met (task), {s}.term
                 WHERE kind = 'task' AND name = met.task AND queue = '' AND since <= p_now AND p_now < until
                   AND (gate IS NOT NULL OR rate_every IS NOT NULL))
      OR (has_holds AND EXISTS (
            SELECT 1 FROM (SELECT 'task' AS kind, unnest(chosen.tasks) AS name
                           UNION ALL SELECT 'tenant', unnest(chosen.tenants)) AS met, {s}.hold
            WHERE hold.kind = met.kind AND hold.name = met.name AND verb = 'paused' AND until > p_now));
    EXIT WHEN is_stuck;
    UPDATE {s}.strand SET ver = q.ver, head_key = new.key, head_id = new.id,
                          state = CASE WHEN new.id IS NULL THEN 0 ELSE 1 END
    FROM unnest(chosen.strands, chosen.keys, chosen.ids) AS new (tid, key, id) WHERE strand.ctid = new.tid;
    UPDATE {s}.turn SET ver = q.ver, vt = new.vt, ready = ready - new.served, head_key = coalesce(new.low_key, head_key),
                        state = CASE WHEN new.is_parked THEN 2 WHEN new.is_open THEN 1 WHEN held.is_any THEN 3 ELSE 0 END,
                        ready_since = CASE WHEN new.is_open OR held.is_any THEN ready_since ELSE 0 END
    FROM unnest(chosen.turns, chosen.tenants, chosen.clocks, chosen.served, chosen.opens, chosen.low_keys, chosen.parks)
           AS new (tid, tenant, vt, served, is_open, low_key, is_parked),
         LATERAL (SELECT NOT new.is_open AND EXISTS (
           SELECT 1 FROM {s}.strand s WHERE s.queue = q.name AND s.tenant = new.tenant AND s.state = 2) AS is_any) AS held
    WHERE turn.ctid = new.tid AND (new.served > 0 OR NOT new.is_open OR new.is_parked);
    IF cardinality(v_held) > 0 THEN
      PERFORM {s}.park_at_limit(p_now, q, v_held);
      parked := parked + cardinality(v_held);
    END IF;
    IF chosen.jobs IS NOT NULL THEN
      tids := tids || chosen.jobs;
      capped := capped || chosen.capped;
      v_owners := v_owners || chosen.owners;
      has_started := has_started OR chosen.is_started;
      q.low := greatest(q.low, chosen.tag);
      q.floor := greatest(q.floor, chosen.tag);
      q.waiting := q.waiting - cardinality(chosen.jobs);
    END IF;
  END LOOP;
END $$;

-- Choose the next jobs of a queue, as many as `p_most`, and say what becomes of the turns and strands that they are from.
CREATE OR REPLACE FUNCTION {s}.choose(
  q {s}.queue, p_now bigint, p_most int, p_has_strides boolean, p_stride bigint, p_has_limits boolean, p_limits {s}.term,
  p_owners text[]
) RETURNS {s}.choice LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  chosen {s}.choice;
BEGIN
  WITH low AS MATERIALIZED (  -- `own` is asked for only where it counts: even an empty join of a function costs 20 µs a row
    SELECT ctid AS tid, tenant, vt, ready_since, head_key AS low_key,
           CASE WHEN p_has_strides THEN {s}.stride_of(p_now, tenant) ELSE p_stride END AS stride,
           CASE WHEN p_has_limits THEN (SELECT l FROM {s}.limits_of(p_now, q.name, tenant) l) ELSE p_limits END AS own
    FROM {s}.turn WHERE queue = q.name AND state = 1 AND vt >= q.low
    ORDER BY queue, vt, ready_since LIMIT p_most),
  level AS MATERIALIZED (  -- the lowest level that any number of the lowest clocks would reach is the true one
    SELECT q.low + ceil(min(water) - 0.001)::bigint AS top FROM (
      SELECT (p_most + sum((vt - q.low) / stride::float8) OVER sofar) / sum(1 / stride::float8) OVER sofar AS water
      FROM low WINDOW sofar AS (ORDER BY vt, ready_since ROWS UNBOUNDED PRECEDING)) AS levels),
  roomy AS MATERIALIZED (
    SELECT low.*, least((top - vt - 1) / stride + 1, p_most)::int AS most,
           (own).running AS running, (own).rate_every IS NOT NULL AS has_rate,
           CASE WHEN (own).running IS NOT NULL THEN (own).running - (
             SELECT count(*) FROM (SELECT 1 FROM {s}.job WHERE state = {running}
                                     AND (queue, tenant) BETWEEN (q.name, low.tenant) AND (q.name, low.tenant)
                                   LIMIT (low.own).running) AS held)::int
             - (SELECT count(*) FROM unnest(p_owners) AS owner WHERE owner = low.tenant)::int END AS room
    FROM low, level WHERE vt < top),
  wanted AS MATERIALIZED (
    SELECT tid, tenant, vt, ready_since, low_key, stride, has_rate, running, room,
           least(most, CASE WHEN room < 0 THEN 0 ELSE room END) AS most
    FROM roomy),
  strands AS MATERIALIZED (
    SELECT w.tid AS turn, w.tenant, w.vt, w.ready_since, w.stride, w.most, w.room, w.has_rate, w.running, s.tid, s.task,
           s.head_key, s.head_id,
           row_number() OVER (PARTITION BY w.tid ORDER BY s.head_key, s.head_id) AS place
    FROM wanted w LEFT JOIN LATERAL (
      SELECT ctid AS tid, task, head_key, head_id FROM {s}.strand
      WHERE queue = q.name AND tenant = w.tenant AND state = 1 AND head_key >= w.low_key
      ORDER BY queue, tenant, head_key, head_id LIMIT w.most + 1) s ON true),
  jobs AS MATERIALIZED (  -- rows are compared, as no other index than `job_ready` can answer that
    SELECT s.*, j.*, row_number() OVER (PARTITION BY s.turn ORDER BY j.sort_key, j.id) - 1 AS nth
    FROM strands s LEFT JOIN LATERAL (
      SELECT ctid AS job, sort_key, id, expires_at, dedup_key IS NOT NULL AND dedup_until = 'started' AS is_started
      FROM {s}.job
      WHERE (queue, tenant, task, sort_key, id) >= (q.name, s.tenant, s.task, s.head_key, s.head_id)
        AND (queue, tenant, task) <= (q.name, s.tenant, s.task) AND state = {ready}
      ORDER BY queue, tenant, task, sort_key, id LIMIT s.most + 1) j ON s.place <= s.most),
  tagged AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY job IS NULL OR nth >= most, vt + nth * stride, ready_since) AS rank FROM jobs),
  chosen AS MATERIALIZED (  -- past the last clock that was read others may come first, if one that was read had no room
    SELECT *, job IS NOT NULL AND nth < most AND rank <= p_most
              AND ((SELECT count(*) < p_most FROM low) OR (vt + nth * stride, ready_since) <= (
                    SELECT vt, ready_since FROM low ORDER BY vt DESC, ready_since DESC LIMIT 1)) AS is_served
    FROM tagged),
  last AS MATERIALIZED (
    SELECT vt + nth * stride AS tag, ready_since FROM chosen WHERE is_served ORDER BY rank DESC LIMIT 1),
  moved AS MATERIALIZED (
    SELECT turn, tenant, min(vt) + count(*) FILTER (WHERE is_served) * min(stride) AS vt,
           (count(*) FILTER (WHERE is_served))::int AS served, min(room) AS room, min(ready_since) AS ready_since,
           bool_or((job IS NOT NULL AND NOT is_served) OR place > most) AS is_open,
           least(min(sort_key) FILTER (WHERE NOT is_served), min(head_key) FILTER (WHERE place > most)) AS low_key
    FROM chosen GROUP BY turn, tenant),
  ahead AS MATERIALIZED (
    SELECT tid, min(sort_key) FILTER (WHERE NOT is_served) AS head_key,
           (array_agg(id ORDER BY nth) FILTER (WHERE NOT is_served))[1] AS head_id, bool_or(is_served) AS is_touched,
           coalesce(bool_or(id = head_id), false) AS has_head
    FROM chosen WHERE place <= most AND tid IS NOT NULL GROUP BY tid),
  taken AS (
    SELECT array_agg(job ORDER BY rank) AS jobs, array_agg(running IS NOT NULL ORDER BY rank) AS capped,
           array_agg(tenant ORDER BY rank) AS owners,
           min(expires_at) AS expires_at, array_agg(DISTINCT task) AS tasks, bool_or(is_started) AS is_started,
           bool_or(has_rate) AS has_rate
    FROM chosen WHERE is_served),
  after AS (
    SELECT array_agg(turn) AS turns, array_agg(tenant) AS tenants, array_agg(vt) AS clocks, array_agg(served) AS served,
           array_agg(is_open) AS opens, array_agg(low_key) AS low_keys,
           array_agg(is_open AND coalesce(room <= served, false) AND coalesce(
             (vt, ready_since) < (SELECT tag, ready_since FROM last), true)) AS parks
    FROM moved),
  heads AS (
    SELECT array_agg(tid) AS strands, array_agg(head_key) AS keys, array_agg(head_id) AS ids
    -- A head that is gone is set right although nothing was served: `low_key`, above, is that of the first job that is
    -- there, and a strand that is left below it would never be met again.
    FROM ahead WHERE is_touched OR head_id IS NULL OR NOT has_head)
  SELECT taken.jobs, taken.capped, taken.owners, (SELECT tag FROM last), taken.expires_at, taken.tasks, taken.is_started,
         taken.has_rate, after.turns, after.tenants, after.clocks, after.served, after.opens, after.low_keys, after.parks,
         heads.strands, heads.keys, heads.ids
  INTO chosen FROM taken, after, heads;
  RETURN chosen;
END $$;

-- Choose the jobs of the only ready tenant, while it has one open strand: as they come. For `fill` where nothing limits
-- anybody, as `choose_each`; NULL where it is not so simple.
CREATE OR REPLACE FUNCTION {s}.choose_alone(
  q {s}.queue, p_now bigint, p_most int, p_has_strides boolean, p_stride bigint
) RETURNS {s}.choice LANGUAGE plpgsql AS $$
DECLARE
  t record;
  s record;
  v_stride bigint := p_stride;
  v_served int;
  chosen {s}.choice;
BEGIN
  SELECT ctid AS tid, tenant, vt, head_key INTO t FROM {s}.turn
  WHERE queue = q.name AND state = 1 AND vt >= q.low ORDER BY queue, vt, ready_since LIMIT 1;
  IF NOT found THEN
    RETURN NULL;
  END IF;
  SELECT array_agg(tid) AS tids, array_agg(task) AS tasks, array_agg(head_key) AS keys, array_agg(head_id) AS ids INTO s
  FROM (SELECT ctid AS tid, task, head_key, head_id FROM {s}.strand
        WHERE queue = q.name AND tenant = t.tenant AND state = 1 AND head_key >= t.head_key
        ORDER BY queue, tenant, head_key, head_id LIMIT 2) AS two;
  IF cardinality(s.tids) IS DISTINCT FROM 1 THEN
    RETURN NULL;
  END IF;
  IF p_has_strides THEN
    v_stride := {s}.stride_of(p_now, t.tenant);
  END IF;
  SELECT array_agg(tid) FILTER (WHERE nth <= p_most), min(expires_at) FILTER (WHERE nth <= p_most),
         bool_or(is_started) FILTER (WHERE nth <= p_most), ARRAY[min(sort_key) FILTER (WHERE nth > p_most)],
         array_agg(id) FILTER (WHERE nth > p_most)
  INTO chosen.jobs, chosen.expires_at, chosen.is_started, chosen.keys, chosen.ids
  FROM (SELECT *, row_number() OVER () AS nth FROM ( -- of the sorted rows: a plan may sort after it has numbered
          SELECT ctid AS tid, sort_key, id, expires_at, dedup_key IS NOT NULL AND dedup_until = 'started' AS is_started
          FROM {s}.job
          WHERE (queue, tenant, task, sort_key, id) >= (q.name, t.tenant, s.tasks[1], s.keys[1], s.ids[1])
            AND (queue, tenant, task) <= (q.name, t.tenant, s.tasks[1]) AND state = {ready}
          ORDER BY queue, tenant, task, sort_key, id LIMIT p_most + 1) AS first) AS numbered;
  IF chosen.jobs IS NULL THEN
    RETURN NULL;
  END IF;
  v_served := cardinality(chosen.jobs);
  chosen.capped := array_fill(false, ARRAY[v_served]);
  chosen.owners := array_fill(t.tenant, ARRAY[v_served]);
  chosen.tag := t.vt + (v_served - 1) * v_stride;
  chosen.tasks := s.tasks;
  chosen.turns := ARRAY[t.tid];
  chosen.tenants := ARRAY[t.tenant];
  chosen.clocks := ARRAY[t.vt + v_served * v_stride];
  chosen.served := ARRAY[v_served];
  chosen.opens := ARRAY[chosen.ids IS NOT NULL];
  chosen.low_keys := chosen.keys;
  chosen.parks := ARRAY[false];
  chosen.strands := s.tids;
  chosen.ids := coalesce(chosen.ids, ARRAY[NULL::uuid]);
  RETURN chosen;
END $$;

-- Choose one job of each tenant, where that is what `choose` would do: there are as many ready tenants as jobs are wanted,
-- and nobody's second turn comes before another's first. No levels and no ranks are needed then, which
-- halves what choosing costs. NULL where it is not so, or a strand's head is not its first job.
CREATE OR REPLACE FUNCTION {s}.choose_each(
  q {s}.queue, p_now bigint, p_most int, p_has_strides boolean, p_stride bigint
) RETURNS {s}.choice LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  are_heads boolean;
  chosen {s}.choice;
BEGIN
  WITH low AS MATERIALIZED (
    SELECT ctid AS tid, tenant, vt, ready_since, head_key AS low_key,
           CASE WHEN p_has_strides THEN {s}.stride_of(p_now, tenant) ELSE p_stride END AS stride
    FROM {s}.turn WHERE queue = q.name AND state = 1 AND vt >= q.low
    ORDER BY queue, vt, ready_since LIMIT p_most),
  last AS MATERIALIZED (SELECT vt, ready_since FROM low ORDER BY vt DESC, ready_since DESC LIMIT 1),
  met AS MATERIALIZED (
    SELECT low.tid AS turn, low.tenant, low.vt, low.vt + low.stride AS clock, s.tid AS strand, s.task, j.*,
           coalesce(j.id = s.head_id, false) AS is_head, least(j.next_key, s.other_key) AS low_key,
           coalesce(j.next_key, s.other_key) IS NOT NULL AS is_open
    FROM low LEFT JOIN LATERAL (
      SELECT *, lead(head_key) OVER () AS other_key FROM (
        SELECT ctid AS tid, task, head_key, head_id FROM {s}.strand
        WHERE queue = q.name AND tenant = low.tenant AND state = 1 AND head_key >= low.low_key
        ORDER BY queue, tenant, head_key, head_id LIMIT 2) AS two LIMIT 1) AS s ON true
    LEFT JOIN LATERAL (
      SELECT *, lead(sort_key) OVER () AS next_key, lead(id) OVER () AS next_id FROM (
        SELECT ctid AS job, sort_key, id, expires_at, dedup_key IS NOT NULL AND dedup_until = 'started' AS is_started
        FROM {s}.job
        WHERE (queue, tenant, task, sort_key, id) >= (q.name, low.tenant, s.task, s.head_key, s.head_id)
          AND (queue, tenant, task) <= (q.name, low.tenant, s.task) AND state = {ready}
        ORDER BY queue, tenant, task, sort_key, id LIMIT 2) AS two LIMIT 1) AS j ON true
    WHERE p_most = (SELECT count(*) FROM low) AND NOT EXISTS (
      SELECT 1 FROM low, last WHERE (low.vt + low.stride, low.ready_since) < (last.vt, last.ready_since)))
  SELECT bool_and(is_head), array_agg(job), array_agg(tenant), max(vt), min(expires_at),
         (SELECT array_agg(task) FROM (SELECT DISTINCT task FROM met) AS kinds), bool_or(is_started),
         array_agg(turn), array_agg(clock), array_agg(is_open), array_agg(low_key), array_agg(strand),
         array_agg(next_key), array_agg(next_id)
  INTO are_heads, chosen.jobs, chosen.owners, chosen.tag, chosen.expires_at, chosen.tasks, chosen.is_started, chosen.turns,
       chosen.clocks, chosen.opens, chosen.low_keys, chosen.strands, chosen.keys, chosen.ids
  FROM met;
  IF are_heads IS NOT TRUE THEN
    RETURN NULL;
  END IF;
  chosen.tenants := chosen.owners;
  chosen.served := array_fill(1, ARRAY[p_most]);
  chosen.capped := array_fill(false, ARRAY[p_most]);
  chosen.parks := chosen.capped;
  RETURN chosen;
END $$;

-- Write why tenants are parked that have no room left.
CREATE OR REPLACE FUNCTION {s}.park_at_limit(p_now bigint, q {s}.queue, p_tenants text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_tenant text;
  v_tid tid;
BEGIN
  FOREACH v_tenant IN ARRAY p_tenants LOOP
    SELECT ctid INTO v_tid FROM {s}.turn WHERE queue = q.name AND tenant = v_tenant
    ORDER BY queue, tenant, ver DESC LIMIT 1;
    UPDATE {s}.turn SET parked = 'running_limit', subject = 'tenant ' || v_tenant, parked_vt = vt, parked_since = ready_since,
                        parked_until = {s}.limits_end(p_now, q.name, v_tenant)
    WHERE ctid = v_tid;
    PERFORM {s}.cap_running(q.name, v_tenant);
  END LOOP;
END $$;

-- Whether any of the tenants that are next has a stride, or limits in this queue, of its own: as many of them as any way of
-- choosing reads. Those who are parked are not among them, so that one at its limit costs the others nothing.
CREATE OR REPLACE FUNCTION {s}.own_of_next(q {s}.queue, p_most int, OUT strides boolean, OUT limits boolean)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT coalesce(bool_or(own.queue = ''), false), coalesce(bool_or(own.queue IN (q.name, '*')), false)
  INTO strides, limits
  FROM (SELECT tenant FROM {s}.turn WHERE queue = q.name AND state = 1 AND vt >= q.low
        ORDER BY queue, vt, ready_since LIMIT p_most) AS next,
       LATERAL (SELECT queue FROM {s}.term WHERE kind = 'tenant' AND name = next.tenant OFFSET 0) AS own;
END $$;

-- Whether `fill` may try: a queue that counts jobs, without a rate of its own or of all its tenants.
CREATE OR REPLACE FUNCTION {s}.can_fill(p_now bigint, p_queue text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN NOT EXISTS (SELECT 1 FROM {s}.term_of(p_now, 'queue', p_queue) WHERE rate_every IS NOT NULL OR cost = 'seconds')
    AND NOT EXISTS (SELECT 1 FROM {s}.limits_of(p_now, p_queue, '*') WHERE rate_every IS NOT NULL);
END $$;
