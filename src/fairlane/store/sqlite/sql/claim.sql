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

-- name: heads
-- The open strands of turns whose numbers are a JSON array, each with its first job and the place of the second.
SELECT strand.strand, strand.turn, strand.queue, strand.task, strand.jobs, strand.ready, strand.head_key, strand.head_id,
       strand.parked, strand.gate, strand.parked_until, strand.parked_vt, strand.parked_since,
       {body}, {live}, live.strand, live.expires_at, live.gate, live.is_alone, live.charged,
       (SELECT sort_key FROM ready WHERE ready.strand = strand.strand
        AND (ready.sort_key, ready.id) > (strand.head_key, strand.head_id)
        ORDER BY ready.strand, ready.sort_key, ready.id LIMIT 1),
       (SELECT id FROM ready WHERE ready.strand = strand.strand
        AND (ready.sort_key, ready.id) > (strand.head_key, strand.head_id)
        ORDER BY ready.strand, ready.sort_key, ready.id LIMIT 1)
FROM json_each(?1) AS wanted CROSS JOIN strand ON strand.turn = wanted.value
CROSS JOIN ready ON ready.strand = strand.strand AND ready.sort_key = strand.head_key AND ready.id = strand.head_id
CROSS JOIN body ON body.seq = ready.seq CROSS JOIN live ON live.seq = ready.seq
WHERE strand.parked IS NULL AND strand.head_key IS NOT NULL

-- name: claimed
-- Jobs that start alike, whose numbers are a JSON array.
UPDATE live SET state = {running}, attempt = ?1, fence = ?2, worker = ?3, started_at = ?4, lease_until = ?5,
  gate = ?6, is_alone = ?7, charged = ?8
WHERE seq IN (SELECT value FROM json_each(?9))

-- name: taken
-- The first jobs of a strand, up to one that was claimed: all before it were claimed, too, or have expired.
DELETE FROM ready WHERE strand = ?1 AND (sort_key, id) <= (?2, ?3)

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
