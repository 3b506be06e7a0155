-- Settle, renew, reclaim, expire: the end of attempts and of waits.
-- Index: body_id, live_lease, live_expiry, live_asked. Locks: the writer's.

-- name: renewed
UPDATE live SET lease_until = ?1, progress = coalesce(?2, progress), charged = ?3 WHERE seq = ?4

-- name: lapsed
SELECT {body}, {live}, live.strand, live.expires_at, live.gate, live.is_alone, live.charged
FROM live JOIN body USING (seq)
WHERE live.state = {running} AND live.lease_until <= ?1
ORDER BY live.lease_until, body.id LIMIT ?2

-- name: is_any_held
SELECT 1 FROM live WHERE state = {running} AND lease_until IS NOT NULL LIMIT 1

-- name: expired
SELECT {body}, {live}, live.strand, live.expires_at, live.gate, live.is_alone, live.charged
FROM live JOIN body USING (seq)
WHERE live.expires_at IS NOT NULL AND live.expires_at <= ?1 AND live.state <> {running}
ORDER BY live.expires_at, body.id LIMIT ?2

-- name: asked
SELECT body.id, body.tenant FROM live JOIN body USING (seq) WHERE live.worker = ?1 AND live.is_cancel_asked = 1

-- name: standing
-- Of jobs whose numbers are a JSON array: those that a worker runs.
SELECT seq, fence FROM live WHERE seq IN (SELECT value FROM json_each(?1)) AND worker = ?2 AND state = {running}
