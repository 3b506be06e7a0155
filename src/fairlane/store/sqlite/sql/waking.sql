-- Waking what was parked, and marking what a changed policy may have held.
-- Index: turn_parked, strand_parked, strand_line, strand_gate, strand_task, turn_tenant. Locks: the writer's.

-- name: anything
-- Whether a queue has something to wake by time, and whether it has something at a gate: all that a claim of a
-- queue with nothing parked pays.
SELECT EXISTS (SELECT 1 FROM turn WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2)
       OR EXISTS (SELECT 1 FROM strand WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2),
       EXISTS (SELECT 1 FROM strand WHERE queue = ?1 AND gate IS NOT NULL)

-- name: turns_due
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until, parked_vt, parked_since
FROM turn WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2
ORDER BY parked_until, parked_vt, parked_since LIMIT ?3

-- name: strands_due
SELECT strand, parked_until, parked_vt, parked_since, task
FROM strand WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2
ORDER BY parked_until, parked_vt, parked_since, task LIMIT ?3

-- name: gates_of_queue
-- From one gate to the next by the index: a long line at one gate is not read.
WITH RECURSIVE found (gate) AS (
  SELECT min(gate) FROM strand WHERE queue = ?1 AND gate IS NOT NULL
  UNION ALL
  SELECT (SELECT min(gate) FROM strand WHERE queue = ?1 AND gate > found.gate) FROM found WHERE gate IS NOT NULL)
SELECT gate FROM found WHERE gate IS NOT NULL

-- name: line
SELECT strand.strand FROM strand JOIN turn USING (turn)
WHERE strand.queue = ?1 AND strand.gate = ?2 AND (?3 IS NULL OR turn.tenant = ?3)
ORDER BY strand.parked_vt, strand.parked_since, strand.task

-- name: queues_of_gate
WITH RECURSIVE found (queue) AS (
  SELECT min(queue) FROM strand WHERE gate = ?1
  UNION ALL
  SELECT (SELECT min(queue) FROM strand WHERE gate = ?1 AND queue > found.queue) FROM found WHERE queue IS NOT NULL)
SELECT queue FROM found WHERE queue IS NOT NULL

-- name: mark_queue
UPDATE turn SET parked_until = ?1
WHERE queue = ?2 AND parked IS NOT NULL AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_tenant
UPDATE turn SET parked_until = ?1
WHERE tenant = ?2 AND parked IS NOT NULL AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_everyone
UPDATE turn SET parked_until = ?1
WHERE parked IS NOT NULL AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_task
UPDATE strand SET parked_until = ?1
WHERE task = ?2 AND parked IS NOT NULL AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_gate_rate
UPDATE strand SET parked_until = ?1
WHERE parked = 'rate gate ' || ?2 AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue
