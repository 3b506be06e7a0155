-- Serve many at once where nothing can hold anybody back: the smallest tags vt + j * stride (S41), as `serve` would one
-- after the other. Water rises over the lowest clocks to the level that `p_most` jobs can reach; of each tenant one job
-- more than that is looked at, so that its next head is known. `is_stuck`: a head has expired, or a task met has a gate or
-- a rate; nothing more was served then, and `serve` must go on.
-- Index: turn_order, strand_open, strand_held, job_ready. Locks: the caller's mutex of the queue.
CREATE OR REPLACE FUNCTION {s}.fill(
  INOUT q {s}.queue, p_now bigint, p_most int, OUT tids tid[], OUT has_started boolean, OUT is_stuck boolean
) LANGUAGE plpgsql AS $$
DECLARE
  has_strides boolean := EXISTS (SELECT 1 FROM {s}.term WHERE kind = 'tenant' AND name <> '*');
  v_stride bigint := {s}.stride_of(p_now, '*');
  v_tids tid[];
  v_tag bigint;
  v_expires_at bigint;
  v_tasks text[];
  v_started boolean;
  v_turns tid[];
  v_tenants text[];
  v_clocks bigint[];
  v_served int[];
  v_open boolean[];
  v_low_keys bigint[];
  v_strands tid[];
  v_keys bigint[];
  v_ids uuid[];
BEGIN
  tids := '{}';
  has_started := false;
  is_stuck := false;
  WHILE cardinality(tids) < p_most LOOP
    WITH low AS MATERIALIZED (
      SELECT t.tid, t.tenant, t.vt, t.ready_since, t.head_key AS low_key,
             CASE WHEN has_strides THEN {s}.stride_of(p_now, t.tenant) ELSE v_stride END AS stride
      FROM (SELECT ctid AS tid, tenant, vt, ready_since, head_key FROM {s}.turn
            WHERE queue = q.name AND state = 1 AND vt >= q.low
            ORDER BY queue, vt, ready_since LIMIT p_most - cardinality(tids)) t),
    level AS MATERIALIZED (  -- the lowest level that any number of the lowest clocks would reach is the true one
      SELECT q.low + ceil(min(water) - 0.001)::bigint AS top FROM (
        SELECT (p_most - cardinality(tids) + sum((vt - q.low) / stride::float8) OVER sofar)
               / sum(1 / stride::float8) OVER sofar AS water
        FROM low WINDOW sofar AS (ORDER BY vt, ready_since ROWS UNBOUNDED PRECEDING)) AS levels),
    wanted AS MATERIALIZED (
      SELECT low.*, least((top - vt - 1) / stride + 1, p_most - cardinality(tids))::int AS most
      FROM low, level WHERE vt < top),
    strands AS MATERIALIZED (
      SELECT w.tid AS turn, w.tenant, w.vt, w.ready_since, w.stride, w.most, s.tid, s.task, s.head_key, s.head_id,
             row_number() OVER (PARTITION BY w.tid ORDER BY s.head_key, s.head_id) AS place
      FROM wanted w LEFT JOIN LATERAL (
        SELECT ctid AS tid, task, head_key, head_id FROM {s}.strand
        WHERE queue = q.name AND tenant = w.tenant AND state = 1 AND head_key >= w.low_key
        ORDER BY queue, tenant, head_key, head_id LIMIT w.most + 1) s ON true),
    jobs AS MATERIALIZED (
      SELECT s.*, j.*, row_number() OVER (PARTITION BY s.turn ORDER BY j.sort_key, j.id) - 1 AS nth
      FROM strands s LEFT JOIN LATERAL (
        SELECT ctid AS job, sort_key, id, expires_at, dedup_key IS NOT NULL AND dedup_until = 'started' AS is_started
        FROM {s}.job
        WHERE queue = q.name AND tenant = s.tenant AND task = s.task AND state = {ready}
          AND (sort_key, id) >= (s.head_key, s.head_id)
        ORDER BY queue, tenant, task, sort_key, id LIMIT s.most + 1) j ON s.place <= s.most),
    tagged AS MATERIALIZED (
      SELECT *, row_number() OVER (ORDER BY job IS NULL OR nth >= most, vt + nth * stride, ready_since) AS rank
      FROM jobs),
    chosen AS MATERIALIZED (
      SELECT *, job IS NOT NULL AND nth < most AND rank <= p_most - cardinality(tids) AS is_served FROM tagged),
    moved AS MATERIALIZED (
      SELECT turn, tenant, min(vt) + count(*) FILTER (WHERE is_served) * min(stride) AS vt,
             (count(*) FILTER (WHERE is_served))::int AS served,
             bool_or((job IS NOT NULL AND NOT is_served) OR place > most) AS is_open,
             least(min(sort_key) FILTER (WHERE NOT is_served), min(head_key) FILTER (WHERE place > most)) AS low_key
      FROM chosen GROUP BY turn, tenant),
    ahead AS MATERIALIZED (
      SELECT tid, min(sort_key) FILTER (WHERE NOT is_served) AS head_key,
             (array_agg(id ORDER BY nth) FILTER (WHERE NOT is_served))[1] AS head_id, bool_or(is_served) AS is_touched
      FROM chosen WHERE place <= most AND tid IS NOT NULL GROUP BY tid),
    taken AS (
      SELECT array_agg(job ORDER BY rank) AS jobs, max(vt + nth * stride) AS tag, min(expires_at) AS expires_at,
             array_agg(DISTINCT task) AS tasks, bool_or(is_started) AS is_started
      FROM chosen WHERE is_served),
    clocks AS (
      SELECT array_agg(turn) AS turns, array_agg(tenant) AS tenants, array_agg(vt) AS clocks, array_agg(served) AS served,
             array_agg(is_open) AS opens, array_agg(low_key) AS keys
      FROM moved),
    heads AS (
      SELECT array_agg(tid) AS strands, array_agg(head_key) AS keys, array_agg(head_id) AS ids
      FROM ahead WHERE is_touched OR head_id IS NULL)
    SELECT taken.jobs, taken.tag, taken.expires_at, taken.tasks, taken.is_started, clocks.turns, clocks.tenants,
           clocks.clocks, clocks.served, clocks.opens, clocks.keys, heads.strands, heads.keys, heads.ids
    INTO v_tids, v_tag, v_expires_at, v_tasks, v_started, v_turns, v_tenants, v_clocks, v_served,
         v_open, v_low_keys, v_strands, v_keys, v_ids
    FROM taken, clocks, heads;
    EXIT WHEN v_turns IS NULL;
    is_stuck := coalesce(v_expires_at <= p_now, false)
      OR EXISTS (SELECT 1 FROM unnest(v_tasks) AS met (task), {s}.term
                 WHERE kind = 'task' AND name = met.task AND queue = '' AND since <= p_now AND p_now < until
                   AND (gate IS NOT NULL OR rate_every IS NOT NULL));
    EXIT WHEN is_stuck;
    UPDATE {s}.strand SET ver = q.ver, head_key = new.key, head_id = new.id,
                          state = CASE WHEN new.id IS NULL THEN 0 ELSE 1 END
    FROM unnest(v_strands, v_keys, v_ids) AS new (tid, key, id) WHERE strand.ctid = new.tid;
    UPDATE {s}.turn SET ver = q.ver, vt = new.vt, ready = ready - new.served, head_key = coalesce(new.low_key, head_key),
                        state = CASE WHEN new.is_open THEN 1 WHEN held.is_any THEN 3 ELSE 0 END,
                        ready_since = CASE WHEN new.is_open OR held.is_any THEN ready_since ELSE 0 END
    FROM unnest(v_turns, v_tenants, v_clocks, v_served, v_open, v_low_keys)
           AS new (tid, tenant, vt, served, is_open, low_key),
         LATERAL (SELECT NOT new.is_open AND EXISTS (
           SELECT 1 FROM {s}.strand s WHERE s.queue = q.name AND s.tenant = new.tenant AND s.state = 2) AS is_any) AS held
    WHERE turn.ctid = new.tid AND (new.served > 0 OR NOT new.is_open);
    IF v_tids IS NOT NULL THEN
      tids := tids || v_tids;
      has_started := has_started OR v_started;
      q.low := greatest(q.low, v_tag);
      q.floor := greatest(q.floor, v_tag);
      q.waiting := q.waiting - cardinality(v_tids);
    END IF;
  END LOOP;
END $$;

-- Whether nothing of a queue's own, of its tenants or of a pause can hold anybody back; tasks are looked at when met.
CREATE OR REPLACE FUNCTION {s}.is_open_to_all(p_now bigint, p_queue text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN NOT EXISTS (SELECT 1 FROM {s}.hold WHERE kind IN ('tenant', 'task') AND verb = 'paused' AND until > p_now)
    AND NOT EXISTS (SELECT 1 FROM {s}.term_of(p_now, 'queue', p_queue) WHERE rate_every IS NOT NULL OR cost = 'seconds')
    AND NOT EXISTS (SELECT 1 FROM {s}.term_of(p_now, 'queue', p_queue, '*')
                    WHERE rate_every IS NOT NULL OR running IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM {s}.term WHERE kind = 'tenant' AND queue = p_queue
                      AND (running IS NOT NULL OR rate_every IS NOT NULL))
    AND NOT EXISTS (SELECT 1 FROM {s}.term WHERE kind = 'tenant' AND queue = '*'
                      AND (running IS NOT NULL OR rate_every IS NOT NULL));
END $$;
