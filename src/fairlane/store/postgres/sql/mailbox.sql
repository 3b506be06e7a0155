-- Questions to workers and their answers (S70). Index: primary key, question_worker. Locks: the rows that are written.

-- name: ask
WITH known AS (
  SELECT EXISTS (SELECT FROM {schema}.question WHERE id = $2) AS is_repeated,
         EXISTS (SELECT FROM {schema}.worker WHERE id = $3) AS is_registered
), dropped AS (
  DELETE FROM {schema}.question WHERE id IN (
    SELECT id FROM {schema}.question, known WHERE worker = $3 AND is_registered AND NOT is_repeated
    ORDER BY asked_at DESC, id DESC OFFSET $6::int - 1)
), added AS (
  INSERT INTO {schema}.question (id, worker, kind, asked_at, until)
  SELECT $2, $3, $4, {schema}.now_or($1), {schema}.now_or($1) + $5::bigint FROM known WHERE is_registered
  ON CONFLICT (id) DO NOTHING RETURNING id
)
SELECT is_repeated OR is_registered, EXISTS (SELECT FROM added) FROM known

-- name: unanswered
SELECT id, kind, asked_at FROM {schema}.question
WHERE worker = $2 AND answered_at IS NULL AND until > {schema}.now_or($1) ORDER BY asked_at, id

-- name: answer
UPDATE {schema}.question SET answer = $4, answered_at = {schema}.now_or($1)
WHERE id = $2 AND worker = $3 AND answered_at IS NULL AND until > {schema}.now_or($1) RETURNING true

-- name: read
SELECT asked_at, answered_at, answer FROM {schema}.question WHERE id = $1

-- name: clean
DELETE FROM {schema}.question WHERE asked_at <= {schema}.now_or($1) - $2::bigint RETURNING 1
