-- Purpose: count the jobs that match filters, oldest enqueue first, from where the page before ended.
-- Parameters: the position after which to read (:seq, or :from and :from_id), the last one (:last, or :upto
-- and :upto_id), and filters, where null matches everything.
-- Placeholders: {home} the table of the request's states, or body; {walk} the condition that an index
-- answers.
-- Index: the primary key of {home}; body_time, body_tenant, body_correlation. Locks: none (a snapshot).

-- name: edge_of_home
SELECT seq, 0, x'' FROM {home} WHERE seq > :seq ORDER BY seq LIMIT 2 OFFSET :limit

-- name: length_of_home
SELECT count(*) FROM {home} WHERE seq > :seq AND seq <= :last

-- name: edge_in_order
SELECT seq, enqueued_at, id FROM body WHERE {walk} AND (enqueued_at, id) > (:from, :from_id)
  AND (:until IS NULL OR enqueued_at < :until)
ORDER BY enqueued_at, id LIMIT 2 OFFSET :limit

-- name: length_in_order
SELECT count(*) FROM body WHERE {walk} AND (enqueued_at, id) > (:from, :from_id)
  AND (enqueued_at, id) <= (:upto, :upto_id) AND (:until IS NULL OR enqueued_at < :until)

-- name: tally
-- Tags are packed, and one may be part of another: the caller compares the tags of each group.
SELECT body.queue, coalesce(live.state, history.state, dead.state) AS state,
       coalesce(live.because, history.because, dead.because, '') AS because_whole,
       CASE WHEN :tag IS NULL THEN NULL ELSE body.tags END AS tags, count(*), min(body.enqueued_at)
FROM {from} LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE {range}
  AND {filters}
  AND (:tag IS NULL OR instr(body.tags, :tag) > 0)
  AND (:states IS NULL
       OR coalesce(live.state, history.state, dead.state) IN (SELECT value FROM json_each(:states)))
GROUP BY 1, 2, substr(because_whole, 1, instr(because_whole || ':', ':') - 1), 4

-- name: range_of_home
body.seq > :seq AND body.seq <= :last

-- name: range_in_order
{walk} AND (body.enqueued_at, body.id) > (:from, :from_id) AND (body.enqueued_at, body.id) <= (:upto, :upto_id)
  AND (:until IS NULL OR body.enqueued_at < :until)

-- name: from_home
-- CROSS makes SQLite read {home} first.
(SELECT seq FROM {home} WHERE seq > :seq AND seq <= :last ORDER BY seq) AS walked CROSS JOIN body USING (seq)

-- name: from_bodies
body

-- name: own
-- Whether a job was given no correlation id, so that its own id is one.
SELECT 1 FROM body WHERE id = ?1 AND correlation_id IS NULL
