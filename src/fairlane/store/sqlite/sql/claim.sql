-- Claim: whose turn it is, and the jobs at the head of their strands.
-- Parameters: queue, then where the reading goes on. Index: turn_order, turn_newcomers, strand_turn, ready,
-- live_due, turn_parked, strand_parked, strand_gate. Locks: the writer's, so that the order is exact.

-- name: turns
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until
FROM turn WHERE queue = ?1 AND is_ready = 1 AND (vt, ready_since) > (?2, ?3)
ORDER BY vt, ready_since LIMIT ?4

-- name: newcomers
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until
FROM turn WHERE queue = ?1 AND is_ready = 1 AND running = 0 AND (vt, ready_since) > (?2, ?3)
ORDER BY vt, ready_since LIMIT ?4

-- name: strands
SELECT strand, turn, queue, task, jobs, ready, head_key, head_id, parked, gate, parked_until
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
WHERE live.queue = ?1 AND live.state = {delayed} AND live.run_at <= ?2 AND (?4 IS NULL OR body.tenant = ?4)
ORDER BY live.run_at, body.id LIMIT ?3

-- name: queues_with_delayed
SELECT DISTINCT queue FROM turn WHERE delayed > 0

-- name: turns_to_wake
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until
FROM turn WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2
ORDER BY vt, ready_since

-- name: strands_to_wake
SELECT s.strand FROM strand s JOIN turn f USING (turn)
WHERE s.queue = ?1 AND s.parked IS NOT NULL AND s.parked_until <= ?2
ORDER BY f.vt, f.ready_since, s.task

-- name: gates_waited_for
SELECT name FROM gate g WHERE EXISTS (SELECT 1 FROM strand WHERE gate = g.name)

-- name: strands_at_gate
SELECT s.strand FROM strand s JOIN turn f USING (turn)
WHERE s.gate = ?1 AND (?2 IS NULL OR s.queue = ?2)
ORDER BY f.vt, f.ready_since, s.queue, f.tenant, s.task LIMIT ?3

-- name: next_delayed
SELECT min(run_at) FROM live WHERE queue = ?1 AND state = {delayed}

-- name: next_delayed_of
SELECT min(live.run_at) FROM live JOIN body USING (seq)
WHERE live.queue = ?1 AND live.state = {delayed} AND body.tenant = ?2

-- name: next_woken
SELECT min(until) FROM (
  SELECT min(parked_until) AS until FROM turn WHERE queue = ?1 AND parked IS NOT NULL
  UNION ALL
  SELECT min(parked_until) FROM strand WHERE queue = ?1 AND parked IS NOT NULL)

-- name: next_woken_of
SELECT min(until) FROM (
  SELECT min(parked_until) AS until FROM turn WHERE queue = ?1 AND tenant = ?2 AND parked IS NOT NULL
  UNION ALL
  SELECT min(s.parked_until) FROM strand s JOIN turn f USING (turn)
  WHERE s.queue = ?1 AND f.tenant = ?2 AND s.parked IS NOT NULL)

-- name: has_ready
SELECT EXISTS (SELECT 1 FROM turn WHERE queue = ?1 AND ready > 0 AND (?2 IS NULL OR tenant = ?2))

-- name: queues
SELECT DISTINCT queue FROM turn
