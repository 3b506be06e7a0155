-- Claim: whose turn it is, and the jobs at the head of their strands.
-- Parameters: queue, then where the reading goes on. Index: turn_order, turn_newcomers, strand_turn, ready,
-- live_due, turn_parked, strand_parked. Locks: the writer's, so that the order is exact.

-- name: turns
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until, parked_vt, parked_since
FROM turn WHERE queue = ?1 AND is_ready = 1 AND (vt, ready_since) > (?2, ?3)
ORDER BY vt, ready_since LIMIT ?4

-- name: newcomers
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until, parked_vt, parked_since
FROM turn WHERE queue = ?1 AND is_ready = 1 AND running = 0 AND (vt, ready_since) > (?2, ?3)
ORDER BY vt, ready_since LIMIT ?4

-- name: strands
SELECT strand, turn, queue, task, jobs, ready, head_key, head_id, parked, gate, parked_until,
       parked_vt, parked_since
FROM strand WHERE turn = ?1 AND parked IS NULL AND head_key IS NOT NULL AND (head_key, head_id) > (?2, ?3)
ORDER BY head_key, head_id LIMIT ?4

-- name: jobs
SELECT {body}, {live}, live.strand, live.expires_at, live.gate, live.is_alone, live.charged
FROM ready JOIN body USING (seq) JOIN live USING (seq)
WHERE ready.strand = ?1 AND (ready.sort_key, ready.id) > (?2, ?3)
ORDER BY ready.strand, ready.sort_key, ready.id LIMIT ?4

-- name: claimed
UPDATE live SET state = {running}, attempt = ?1, fence = ?2, worker = ?3, started_at = ?4, lease_until = ?5,
  gate = ?6, is_alone = ?7, charged = ?8
WHERE seq = ?9

-- name: due
SELECT {body}, {live}, live.strand, live.expires_at, live.gate, live.is_alone, live.charged
FROM live JOIN body USING (seq)
WHERE live.queue = ?1 AND live.state = {delayed} AND live.run_at <= ?2
ORDER BY live.run_at, body.id LIMIT ?3

-- name: queues_with_delayed
SELECT DISTINCT queue FROM turn WHERE delayed > 0

-- name: next_delayed
SELECT min(run_at) FROM live WHERE queue = ?1 AND state = {delayed}

-- name: next_woken
SELECT min(until) FROM (
  SELECT min(parked_until) AS until FROM turn WHERE queue = ?1 AND parked IS NOT NULL
  UNION ALL
  SELECT min(parked_until) FROM strand WHERE queue = ?1 AND parked IS NOT NULL)

-- name: has_ready
SELECT EXISTS (SELECT 1 FROM turn WHERE queue = ?1 AND ready > 0)

-- name: queues
SELECT DISTINCT queue FROM turn
