-- Purpose: inspect the store itself.
-- Parameters: ?1 tenant or null. Index: live_lease, the primary keys. Locks: none (a snapshot).

-- name: leads
SELECT name, worker, until FROM lead ORDER BY name

-- name: tasks
SELECT DISTINCT task FROM strand JOIN tenant_queue USING (tenant_queue)
WHERE strand.jobs > 0 AND (?1 IS NULL OR tenant_queue.tenant = ?1) ORDER BY task

-- name: first_lease
SELECT live.lease_until FROM live JOIN body USING (seq)
WHERE live.state = {running} AND (?1 IS NULL OR body.tenant = ?1)
ORDER BY live.lease_until, live.seq LIMIT 1

-- name: tables
SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name

-- name: sizes
-- Reads every page of the file once. Indexes count with their table.
SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) WHERE aggregate = TRUE GROUP BY tbl_name
