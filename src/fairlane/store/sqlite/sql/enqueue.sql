-- Purpose: enqueue. Look up the ids of new jobs and count what waits in a queue.
-- Parameters: ?1 id or queue. Index: body_id, tenant_queue_name. Locks: the write lock, so that limits are
-- exact.

-- name: highest_id
SELECT max(id) FROM body

-- name: same_id
SELECT id, tenant FROM body WHERE id = ?1

-- name: queue_waiting
SELECT coalesce(sum(delayed + ready), 0) FROM tenant_queue WHERE queue = ?1
