-- Waking what a changed policy may have held. Index: turn_parked, strand_parked, strand_task. Locks: the writer's.

-- name: turns_of_queue
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until
FROM turn WHERE queue = ?1 AND parked IS NOT NULL ORDER BY vt, ready_since

-- name: turns_of_tenant
SELECT turn, queue, tenant, vt, ready_since, is_ready, open_strands, delayed, ready, running, arrival,
       pace, parked, parked_until
FROM turn WHERE parked IS NOT NULL AND (?1 IS NULL OR tenant = ?1) ORDER BY vt, ready_since

-- name: strands_of
SELECT s.strand FROM strand s JOIN turn t USING (turn)
WHERE s.parked IS NOT NULL AND (s.task = ?1 OR substr(s.parked, instr(s.parked, ' ') + 1) = ?2)
ORDER BY t.vt, t.ready_since, s.queue, t.tenant, s.task
