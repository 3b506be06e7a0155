-- Purpose: claim, renew, settle, reclaim, promote and expire. Read tenants, strands and jobs in the fair order.
-- Parameters: of reads in the fair order, ?1 queue, tenant queue or strand, ?2 and ?3 the position after which to
-- read, ?4 how many; of due, ?1 queue, ?2 now, ?3 how many; of expired_leases and expired, ?1 the instant, ?2 how
-- many.
-- Index: tenant_queue_order, tenant_queue_newcomers, tenant_queue_name, strand_tenant_queue, the primary key of
-- ready, live_due, tenant_queue_parked, strand_parked, live_lease, live_expiry, live_asked.
-- Locks: the write lock, so that the order is exact; none for cancel_requested.

-- name: tenant_queues
SELECT {tenant_queue}
FROM tenant_queue WHERE queue = ?1 AND is_ready = 1 AND (vt, ready_since) > (?2, ?3)
ORDER BY vt, ready_since LIMIT ?4

-- name: idle_tenant_queues
SELECT {tenant_queue}
FROM tenant_queue WHERE queue = ?1 AND is_ready = 1 AND running = 0 AND (vt, ready_since) > (?2, ?3)
ORDER BY vt, ready_since LIMIT ?4

-- name: strands
SELECT {strand}
FROM strand WHERE tenant_queue = ?1 AND parked IS NULL AND head_key IS NOT NULL AND (head_key, head_id) > (?2, ?3)
ORDER BY head_key, head_id LIMIT ?4

-- name: jobs
SELECT {live_job}
FROM ready JOIN body USING (seq) JOIN live USING (seq)
WHERE ready.strand = ?1 AND (ready.sort_key, ready.id) > (?2, ?3)
ORDER BY ready.strand, ready.sort_key, ready.id LIMIT ?4

-- name: heads
-- The open strands of the tenant queues in a JSON array (?1), each with its first job and the position of the
-- second.
SELECT {strand}, {live_job},
       (SELECT sort_key FROM ready WHERE ready.strand = strand.strand
        AND (ready.sort_key, ready.id) > (strand.head_key, strand.head_id)
        ORDER BY ready.strand, ready.sort_key, ready.id LIMIT 1),
       (SELECT id FROM ready WHERE ready.strand = strand.strand
        AND (ready.sort_key, ready.id) > (strand.head_key, strand.head_id)
        ORDER BY ready.strand, ready.sort_key, ready.id LIMIT 1)
FROM json_each(?1) AS wanted CROSS JOIN strand ON strand.tenant_queue = wanted.value
CROSS JOIN ready ON ready.strand = strand.strand AND ready.sort_key = strand.head_key AND ready.id = strand.head_id
CROSS JOIN body ON body.seq = ready.seq CROSS JOIN live ON live.seq = ready.seq
WHERE strand.parked IS NULL AND strand.head_key IS NOT NULL

-- name: claimed
-- Start all jobs in a JSON array (?8) with the same values.
UPDATE live SET state = {running}, attempt = ?1, fence = ?2, worker = ?3, started_at = ?4, lease_until = ?5,
  gate = ?6, charged = ?7
WHERE seq IN (SELECT value FROM json_each(?8))

-- name: taken
-- Remove the first jobs of a strand, up to one that was claimed: all before it were claimed or have expired.
DELETE FROM ready WHERE strand = ?1 AND (sort_key, id) <= (?2, ?3)

-- name: due
SELECT {live_job}
FROM live JOIN body USING (seq)
WHERE live.queue = ?1 AND live.state = {delayed} AND live.run_at <= ?2
ORDER BY live.run_at, body.id LIMIT ?3

-- name: queues_with_delayed
SELECT DISTINCT queue FROM tenant_queue WHERE delayed > 0

-- name: next_delayed
SELECT min(run_at) FROM live WHERE queue = ?1 AND state = {delayed}

-- name: next_unparked
SELECT min(until) FROM (
  SELECT min(parked_until) AS until FROM tenant_queue WHERE queue = ?1 AND parked IS NOT NULL
  UNION ALL
  SELECT min(parked_until) FROM strand WHERE queue = ?1 AND parked IS NOT NULL)

-- name: has_ready
SELECT EXISTS (SELECT 1 FROM tenant_queue WHERE queue = ?1 AND ready > 0)

-- name: queues
SELECT DISTINCT queue FROM tenant_queue

-- name: renewed
UPDATE live SET lease_until = ?1, progress = coalesce(?2, progress), charged = ?3 WHERE seq = ?4

-- name: expired_leases
SELECT {live_job}
FROM live JOIN body USING (seq)
WHERE live.state = {running} AND live.lease_until <= ?1
ORDER BY live.lease_until, body.id LIMIT ?2

-- name: is_any_running
SELECT 1 FROM live WHERE state = {running} AND lease_until IS NOT NULL LIMIT 1

-- name: stuck
-- Claims whose lease still runs at ?1, that began at ?2 or later and are older than they may be: by their own limit, or at
-- ?3 times their timeout. Reads all running jobs.
SELECT {live_job}
FROM live JOIN body USING (seq)
WHERE live.state = {running} AND live.lease_until > ?1 AND live.started_at >= ?2
  AND live.started_at + coalesce(body.stuck_after, ?3 * body.timeout) <= ?1
ORDER BY live.started_at, body.id LIMIT ?4

-- name: expired
SELECT {live_job}
FROM live JOIN body USING (seq)
WHERE live.expires_at IS NOT NULL AND live.expires_at <= ?1 AND live.state <> {running}
ORDER BY live.expires_at, body.id LIMIT ?2

-- name: cancel_requested
SELECT body.id, body.tenant FROM live JOIN body USING (seq) WHERE live.worker = ?1 AND live.is_cancel_asked = 1

-- name: still_running
-- Of the jobs in a JSON array (?1), those that a worker (?2) runs, with their fences.
SELECT seq, fence FROM live WHERE seq IN (SELECT value FROM json_each(?1)) AND worker = ?2 AND state = {running}
