-- Counting what meets filters, oldest enqueue first, from where a page before ended.
-- Parameters: the place after which to go on (:seq, or :from and :from_id), the end (:upto, :upto_id, or :last) and the
-- filters; null lets everything through. `{home}` is the table of the states that are asked for, or all bodies; `{walk}`
-- the condition that an index answers. Index: the primary key of the home; body_time, body_tenant, body_correlation.
-- Locks: none, a snapshot.

-- name: edge_of_home
SELECT seq, 0, x'' FROM {home} WHERE seq > :seq ORDER BY seq LIMIT 2 OFFSET :most

-- name: length_of_home
SELECT count(*) FROM {home} WHERE seq > :seq AND seq <= :last

-- name: edge_in_order
SELECT seq, enqueued_at, id FROM body WHERE {walk} AND (enqueued_at, id) > (:from, :from_id)
  AND (:until IS NULL OR enqueued_at < :until)
ORDER BY enqueued_at, id LIMIT 2 OFFSET :most

-- name: length_in_order
SELECT count(*) FROM body WHERE {walk} AND (enqueued_at, id) > (:from, :from_id)
  AND (enqueued_at, id) <= (:upto, :upto_id) AND (:until IS NULL OR enqueued_at < :until)

-- name: tally
-- Tags are packed, and one may stand inside another: whoever reads the groups compares them.
SELECT body.queue, coalesce(live.state, history.state, dead.state) AS state,
       coalesce(live.because, history.because, dead.because, '') AS because_whole,
       CASE WHEN :tag IS NULL THEN NULL ELSE body.tags END AS tags, count(*), min(body.enqueued_at)
FROM {from} LEFT JOIN live USING (seq) LEFT JOIN history USING (seq) LEFT JOIN dead USING (seq)
WHERE {range}
  AND (:tenant IS NULL OR body.tenant = :tenant) AND (:queue IS NULL OR body.queue = :queue)
  AND (:task IS NULL OR body.task = :task) AND (:parent IS NULL OR body.parent_id = :parent)
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
-- CROSS keeps the home outside.
(SELECT seq FROM {home} WHERE seq > :seq AND seq <= :last ORDER BY seq) AS walked CROSS JOIN body USING (seq)

-- name: from_bodies
body

-- name: own
-- A job without a correlation id has its own id for one.
SELECT 1 FROM body WHERE id = ?1 AND correlation_id IS NULL
