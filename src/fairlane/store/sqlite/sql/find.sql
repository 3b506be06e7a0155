-- Reading: jobs over all homes, newest enqueue first; what goes before a job.
-- Parameters: a range of places, from :bottom below :top, and the filters; null lets everything through. `{walk}` is
-- the condition that an index answers, `{from}` all bodies or a few, `{list}` the jobs of some states. Index: body_time, body_tenant,
-- body_correlation, live_due, live_lease, ready, dead_settled, turn_name, strand_name. Locks: none, a snapshot.

-- name: last
SELECT enqueued_at, id FROM body WHERE {walk} AND (enqueued_at, id) < (:top, :top_id)
ORDER BY body.enqueued_at DESC, body.id DESC LIMIT 2 OFFSET :most

-- name: walk_all
body

-- name: walk_few
-- CROSS keeps the list outside: by time, all bodies would be walked to find the few.
({list}) AS few CROSS JOIN body USING (seq)

-- name: chosen
SELECT {body}, {live}, {history}, {dead}
FROM {from} LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE {walk} AND (body.enqueued_at, body.id) < (:top, :top_id) AND (body.enqueued_at, body.id) >= (:bottom, :bottom_id)
  AND (:tenant IS NULL OR body.tenant = :tenant) AND (:queue IS NULL OR body.queue = :queue)
  AND (:task IS NULL OR body.task = :task) AND (:parent IS NULL OR body.parent_id = :parent)
  AND (:correlation IS NULL OR coalesce(body.correlation_id, :correlation) = :correlation)
  AND (:tag IS NULL OR instr(body.tags, :tag) > 0)
  AND (:states IS NULL
       OR coalesce(live.state, history.state, dead.state) IN (SELECT value FROM json_each(:states)))
ORDER BY body.enqueued_at DESC, body.id DESC

-- name: own
-- A job without a correlation id has its own id for one.
SELECT {body}, {live}, {history}, {dead}
FROM body LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE body.id = :own AND body.correlation_id IS NULL AND (body.enqueued_at, body.id) < (:top, :top_id) AND (body.enqueued_at, body.id) >= (:bottom, :bottom_id)

-- name: length
SELECT count(*) FROM (SELECT 1 FROM ({list}) LIMIT ?1)

-- name: delayed_now
SELECT seq FROM live WHERE state = {delayed}

-- name: ready_now
SELECT seq FROM ready

-- name: running_now
SELECT seq FROM live WHERE state = {running}

-- name: dead_now
SELECT seq FROM dead

-- name: ahead
SELECT count(*) FROM (
  SELECT 1 FROM strand s JOIN ready r USING (strand)
  WHERE s.turn = ?1 AND (r.sort_key, r.id) < (?2, ?3) LIMIT 10000)

-- name: served
SELECT card FROM worker WHERE beat_at >= ?1
