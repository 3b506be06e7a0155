-- Purpose: read dead letters, the latest first.
-- Parameters: page: ?1 and ?2 the position below which to read, ?3 tenant or null.
-- Index: dead_settled, body_id. Locks: none (a snapshot).

-- name: one
SELECT {body}, {dead}, dead.error_class, dead.review FROM body JOIN dead USING (seq) WHERE body.id = ?1

-- name: page
SELECT {body}, {dead}, dead.error_class, dead.review
FROM dead JOIN body USING (seq)
WHERE (dead.settled_at, dead.id) < (?1, ?2) AND (?3 IS NULL OR body.tenant = ?3)
ORDER BY dead.settled_at DESC, dead.id DESC

-- name: counts
-- ?1 tenant or null, ?2 to ?4 the last count of the page before, ?5 how many. Reads all dead letters; they
-- are few.
SELECT body.tenant, body.queue, dead.review, count(*)
FROM dead JOIN body USING (seq)
WHERE (?1 IS NULL OR body.tenant = ?1) AND (body.tenant, body.queue, dead.review) > (?2, ?3, ?4)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT ?5
