-- Purpose: read dead letters, the latest first; count what they have in common; write what people decide.
-- Parameters: a range of positions, below :top and from :bottom on, and filters, where null matches everything.
-- Placeholders: {index} the index that is walked, {walk} the condition that it answers.
-- Index: letter_settled, letter_tenant, letter_fingerprint, letter_review, letter_count, letter_new_job, body_id.
-- Locks: the write lock for writes; none for the reader (a snapshot).

-- name: one
SELECT {body}, {dead}, {letter}
FROM body JOIN dead USING (seq) JOIN letter USING (seq) WHERE body.id = ?1

-- name: edge
-- The last letter that a call may read, and the one after it.
SELECT settled_at, id FROM letter INDEXED BY {index}
WHERE {walk} AND (settled_at, id) < (:top, :top_id) AND (settled_at, id) >= (:bottom, :bottom_id)
ORDER BY settled_at DESC, id DESC LIMIT 2 OFFSET :limit

-- name: length
SELECT count(*) FROM letter INDEXED BY {index}
WHERE {walk} AND (settled_at, id) < (:top, :top_id) AND (settled_at, id) >= (:bottom, :bottom_id)

-- name: page
-- CROSS makes SQLite walk the letters first, so that it reads no wide row of a letter that does not match.
SELECT {body}, {dead}, {letter}
FROM letter INDEXED BY {index} CROSS JOIN dead USING (seq) CROSS JOIN body USING (seq)
WHERE {walk} AND (letter.settled_at, letter.id) < (:top, :top_id)
  AND (letter.settled_at, letter.id) >= (:bottom, :bottom_id)
  AND {letter_filters}
ORDER BY letter.settled_at DESC, letter.id DESC LIMIT :limit

-- name: tally
-- The sample is the greatest position of a group, as text: bare columns beside max() are those of any row.
SELECT fingerprint, error_class, tenant, queue, task, review, count(*), min(settled_at), max(settled_at),
       max(printf('%016x', settled_at) || hex(id))
FROM letter INDEXED BY {index}
WHERE {walk} AND (settled_at, id) < (:top, :top_id) AND (settled_at, id) >= (:bottom, :bottom_id)
  AND {letter_filters}
GROUP BY 1, 2, 3, 4, 5, 6

-- name: counts
-- ?1 tenant or null, ?2 to ?4 the last count of the page before, ?5 how many.
SELECT tenant, queue, review, count(*) FROM letter INDEXED BY letter_count
WHERE (tenant, queue, review) > (?2, ?3, ?4) AND (?1 IS NULL OR tenant = ?1)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT ?5

-- name: write_review
UPDATE letter SET {assign_review} WHERE seq = ?1

-- name: review_of
SELECT review, record FROM letter WHERE seq = ?1

-- name: erase_fingerprint
UPDATE letter SET fingerprint = '' WHERE seq = ?1

-- name: edge_of_runs
-- The last of the new jobs that a pass may look at, and the one after it.
SELECT new_job FROM letter INDEXED BY letter_new_job WHERE new_job > ?1 ORDER BY new_job LIMIT 2 OFFSET ?2

-- name: ended_runs
-- Letters whose new job, after ?1 and up to ?2, is not live any more; ?3 how many. The last two columns are null if it is
-- stored nowhere.
SELECT {body}, {dead}, {letter}, coalesce(ended.state, died.state), coalesce(ended.settled_at, died.settled_at)
FROM letter INDEXED BY letter_new_job
LEFT JOIN body AS run ON run.id = letter.new_job
LEFT JOIN live ON live.seq = run.seq
LEFT JOIN history AS ended ON ended.seq = run.seq
LEFT JOIN dead AS died ON died.seq = run.seq
CROSS JOIN dead ON dead.seq = letter.seq
CROSS JOIN body ON body.seq = letter.seq
WHERE letter.new_job > ?1 AND letter.new_job <= ?2 AND live.seq IS NULL
ORDER BY letter.new_job LIMIT ?3
