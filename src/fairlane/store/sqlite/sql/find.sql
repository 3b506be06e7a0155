-- Reading: jobs over all homes, newest enqueue first; counts; what goes before a job.
-- Parameters: where the reading goes on, then how many rows. Index: body_time, body_tenant, body_correlation,
-- strand_name, ready. Locks: none, a snapshot.

-- name: all
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE (body.enqueued_at, body.id) < (?1, ?2)
ORDER BY body.enqueued_at DESC, body.id DESC LIMIT ?3

-- name: of_tenant
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE body.tenant = ?4 AND (body.enqueued_at, body.id) < (?1, ?2)
ORDER BY body.enqueued_at DESC, body.id DESC LIMIT ?3

-- name: of_correlation
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE body.correlation_id = ?4 AND (body.enqueued_at, body.id) < (?1, ?2)
ORDER BY body.enqueued_at DESC, body.id DESC LIMIT ?3

-- name: counts
SELECT tenant, queue, {delayed}, delayed FROM turn WHERE delayed > 0
UNION ALL SELECT tenant, queue, {ready}, ready FROM turn WHERE ready > 0
UNION ALL SELECT tenant, queue, {running}, running FROM turn WHERE running > 0
UNION ALL SELECT tenant, queue, state, jobs FROM tally WHERE jobs > 0

-- name: ahead
SELECT count(*) FROM (
  SELECT 1 FROM strand s JOIN ready r USING (strand)
  WHERE s.turn = ?1 AND (r.sort_key, r.id) < (?2, ?3) LIMIT 10000)

-- name: served
SELECT card FROM worker WHERE beat_at >= ?1
