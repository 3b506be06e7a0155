-- Purpose: find jobs in any state, newest enqueue first; explain what is ahead of a ready job.
-- Parameters: a range of positions, from :bottom up to and without :top, and filters, where null matches
-- everything.
-- Placeholders: {walk} the condition that an index answers, {from} all bodies or a few, {list} the jobs of
-- some states.
-- Index: body_time, body_tenant, body_correlation, live_due, live_lease, the primary key of ready,
-- letter_count, strand_name. Locks: none (a snapshot).

-- name: last
SELECT enqueued_at, id FROM body WHERE {walk} AND (enqueued_at, id) < (:top, :top_id)
ORDER BY body.enqueued_at DESC, body.id DESC LIMIT 2 OFFSET :limit

-- name: walk_all
body

-- name: walk_few
-- CROSS makes SQLite read the list first; else it would walk all bodies by time to find these few.
({list}) AS few CROSS JOIN body USING (seq)

-- name: chosen
SELECT {body}, {live}, {history}, {dead}
FROM {from} LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE {walk} AND (body.enqueued_at, body.id) < (:top, :top_id) AND (body.enqueued_at, body.id) >= (:bottom, :bottom_id)
  AND {filters}
  AND (:correlation IS NULL OR coalesce(body.correlation_id, :correlation) = :correlation)
  AND (:tag IS NULL OR instr(body.tags, :tag) > 0)
  AND (:states IS NULL
       OR coalesce(live.state, history.state, dead.state) IN (SELECT value FROM json_each(:states)))
ORDER BY body.enqueued_at DESC, body.id DESC

-- name: own
-- The job whose id is the correlation id, because it was given none.
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
SELECT seq FROM letter

-- name: ahead
SELECT count(*) FROM (
  SELECT 1 FROM strand s JOIN ready r USING (strand)
  WHERE s.tenant_queue = ?1 AND (r.sort_key, r.id) < (?2, ?3) LIMIT 10000)

-- name: served
SELECT record FROM worker WHERE beat_at >= ?1
