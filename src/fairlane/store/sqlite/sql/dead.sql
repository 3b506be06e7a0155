-- Dead letters, latest death first. Index: dead_settled, body_id. Locks: none, a snapshot.

-- name: one
SELECT {body}, {dead}, dead.error_class, dead.review FROM body JOIN dead USING (seq) WHERE body.id = ?1

-- name: page
SELECT {body}, {dead}, dead.error_class, dead.review
FROM dead JOIN body USING (seq)
WHERE (dead.settled_at, dead.id) < (?1, ?2) AND (?3 IS NULL OR body.tenant = ?3)
ORDER BY dead.settled_at DESC, dead.id DESC

-- name: counts
-- ?1 tenant or null, ?2 to ?4 the last count given, ?5 how many. Reads all letters: people keep them few.
SELECT body.tenant, body.queue, dead.review, count(*)
FROM dead JOIN body USING (seq)
WHERE (?1 IS NULL OR body.tenant = ?1) AND (body.tenant, body.queue, dead.review) > (?2, ?3, ?4)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT ?5
