-- What a person asks of the store itself. ?1 tenant or null. Index: live_lease, primary keys. Locks: none.

-- name: leads
SELECT name, worker, until FROM lead ORDER BY name

-- name: tasks
SELECT DISTINCT task FROM strand JOIN turn USING (turn)
WHERE strand.jobs > 0 AND (?1 IS NULL OR turn.tenant = ?1) ORDER BY task

-- name: first_lease
SELECT live.lease_until FROM live JOIN body USING (seq)
WHERE live.state = {running} AND (?1 IS NULL OR body.tenant = ?1)
ORDER BY live.lease_until, live.seq LIMIT 1
