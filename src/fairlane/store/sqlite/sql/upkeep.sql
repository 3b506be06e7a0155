-- Upkeep: what is old, what a tenant has, and the books. Index: history_settled, dead_settled, body_tenant,
-- idempotency_settled. Locks: the writer's for passes, none for the census.

-- name: finished
SELECT {body}, {live}, {history}, {dead}
FROM (SELECT seq FROM (SELECT seq, settled_at FROM history WHERE settled_at <= ?1
                       UNION ALL SELECT seq, settled_at FROM dead WHERE settled_at <= ?1) ORDER BY settled_at, seq)
JOIN body USING (seq)
LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE ?2 IS NULL OR body.tenant = ?2
LIMIT ?3

-- name: result_out
UPDATE history SET result = x'' WHERE seq = ?1

-- name: keys_out
DELETE FROM idempotency
WHERE settled_at IS NOT NULL AND settled_at <= ?1 AND (?2 IS NULL OR tenant = ?2)
  AND NOT EXISTS (SELECT 1 FROM body WHERE body.id = idempotency.id)
RETURNING 1

-- name: running_of
SELECT {body}, {live}, live.strand, live.expires_at, live.gate, live.is_alone, live.charged
FROM live JOIN body USING (seq) WHERE live.state = {running} AND body.tenant = ?1

-- name: running_count
SELECT coalesce(sum(running), 0) FROM turn WHERE tenant = ?1

-- name: contents_of
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE body.tenant = ?1 AND coalesce(live.state, '') <> ?2
ORDER BY body.id

-- name: keys_of
DELETE FROM idempotency WHERE tenant = ?1
  AND NOT EXISTS (SELECT 1 FROM body JOIN live USING (seq) WHERE body.id = idempotency.id)

-- name: waiting
SELECT {body}, {live}, live.strand, live.expires_at, live.gate, live.is_alone, live.charged
FROM live JOIN body USING (seq)
WHERE live.state <> {running} AND (?1 IS NULL OR body.tenant = ?1) AND (?2 IS NULL OR body.queue = ?2)
  AND (?3 IS NULL OR body.task = ?3)
ORDER BY body.enqueued_at, body.id LIMIT ?4

-- name: homes
SELECT 'hot', count(*) FROM live JOIN body USING (seq) WHERE ?1 IS NULL OR tenant = ?1
UNION ALL SELECT 'history', count(*) FROM history JOIN body USING (seq) WHERE ?1 IS NULL OR tenant = ?1
UNION ALL SELECT 'dead', count(*) FROM dead JOIN body USING (seq) WHERE ?1 IS NULL OR tenant = ?1

-- name: books
SELECT queue, tenant, delayed + ready, running FROM turn
WHERE delayed + ready + running > 0 AND (?1 IS NULL OR tenant = ?1) ORDER BY queue, tenant

-- name: gates
SELECT name, used FROM gate WHERE used > 0 ORDER BY name

-- name: key_count
SELECT count(*) FROM idempotency WHERE ?1 IS NULL OR tenant = ?1

-- name: dedup_count
SELECT count(*) FROM dedup WHERE ?1 IS NULL OR tenant = ?1
