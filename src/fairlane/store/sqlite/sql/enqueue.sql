-- Enqueue: what is known of a new job's keys and id, and the keys it takes.
-- Index: body_id, the primary keys of idempotency and dedup. Locks: the writer's, so that limits are exact.

-- name: highest_id
SELECT max(id) FROM body

-- name: same_id
SELECT id, tenant FROM body WHERE id = ?1

-- name: same_key
SELECT id, fingerprint, state, settled_at FROM idempotency WHERE tenant = ?1 AND key = ?2

-- name: same_dedup
SELECT id FROM dedup WHERE tenant = ?1 AND task = ?2 AND key = ?3

-- name: key_in
INSERT INTO idempotency (tenant, key, id, fingerprint) VALUES (?1, ?2, ?3, ?4)

-- name: key_out
DELETE FROM idempotency WHERE tenant = ?1 AND key = ?2

-- name: dedup_in
INSERT INTO dedup (tenant, task, key, id) VALUES (?1, ?2, ?3, ?4)

-- name: queue_waiting
SELECT coalesce(sum(delayed + ready), 0) FROM turn WHERE queue = ?1
