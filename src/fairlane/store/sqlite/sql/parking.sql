-- Purpose: unpark tenant queues and strands; after a changed policy, set when what it may have blocked is
-- unparked.
-- Parameters: ?1 queue or gate, ?2 now, ?3 how many; of strands_at_gate, ?1 queue, ?2 gate, ?3 tenant or NULL; of
-- mark_*, ?1 now, ?2 the subject's name.
-- Index: tenant_queue_parked, strand_parked, strand_line, strand_gate, strand_task, strand_budget, tenant_queue_tenant.
-- Locks: the write lock.

-- name: what_is_parked
-- Whether a queue has something to unpark by time, and whether a strand waits at a gate. A queue with nothing
-- parked costs a claim no more than this.
SELECT EXISTS (SELECT 1 FROM tenant_queue WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2)
       OR EXISTS (SELECT 1 FROM strand WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2),
       EXISTS (SELECT 1 FROM strand WHERE queue = ?1 AND gate IS NOT NULL)

-- name: tenant_queues_due
SELECT {tenant_queue} FROM tenant_queue WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2
ORDER BY parked_until, parked_vt, parked_since LIMIT ?3

-- name: strands_due
SELECT strand, parked_until, parked_vt, parked_since, task
FROM strand WHERE queue = ?1 AND parked IS NOT NULL AND parked_until <= ?2
ORDER BY parked_until, parked_vt, parked_since, task LIMIT ?3

-- name: gates_of_queue
-- Jumps from gate to gate in the index, so that a long line at one gate is not read.
WITH RECURSIVE found (gate) AS (
  SELECT min(gate) FROM strand WHERE queue = ?1 AND gate IS NOT NULL
  UNION ALL
  SELECT (SELECT min(gate) FROM strand WHERE queue = ?1 AND gate > found.gate) FROM found WHERE gate IS NOT NULL)
SELECT gate FROM found WHERE gate IS NOT NULL

-- name: strands_at_gate
SELECT strand.strand FROM strand JOIN tenant_queue USING (tenant_queue)
WHERE strand.queue = ?1 AND strand.gate = ?2 AND (?3 IS NULL OR tenant_queue.tenant = ?3)
ORDER BY strand.parked_vt, strand.parked_since, strand.task

-- name: queues_of_gate
WITH RECURSIVE found (queue) AS (
  SELECT min(queue) FROM strand WHERE gate = ?1
  UNION ALL
  SELECT (SELECT min(queue) FROM strand WHERE gate = ?1 AND queue > found.queue) FROM found WHERE queue IS NOT NULL)
SELECT queue FROM found WHERE queue IS NOT NULL

-- name: mark_queue
UPDATE tenant_queue SET parked_until = ?1
WHERE queue = ?2 AND parked IS NOT NULL AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_tenant
UPDATE tenant_queue SET parked_until = ?1
WHERE tenant = ?2 AND parked IS NOT NULL AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_all_tenants
UPDATE tenant_queue SET parked_until = ?1
WHERE parked IS NOT NULL AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_task
UPDATE strand SET parked_until = ?1
WHERE task = ?2 AND parked IS NOT NULL AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_budget
UPDATE strand SET parked_until = ?1
WHERE parked = 'budget budget ' || ?2 AND parked >= 'budget ' AND parked < 'budget!'
  AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue

-- name: mark_gate_rate
UPDATE strand SET parked_until = ?1
WHERE parked = 'rate gate ' || ?2 AND (parked_until IS NULL OR parked_until > ?1) RETURNING queue
