-- Purpose: the first ready job of a tenant in a queue, and its run_at.
-- Parameters: ?1 tenant, ?2 queue. Index: tenant_queue_name, strand_name, body_id. Locks: none (a snapshot).

-- name: first_in_line
-- A strand has its first ready job in its row, parked or not.
SELECT ?1, ?2, first.head_id, live.run_at
FROM (
  SELECT s.head_key, s.head_id FROM tenant_queue t JOIN strand s USING (tenant_queue)
  WHERE t.tenant = ?1 AND t.queue = ?2 AND s.ready > 0
  ORDER BY s.head_key, s.head_id LIMIT 1) AS first
JOIN body ON body.id = first.head_id JOIN live USING (seq)
