-- Users, tokens, sessions and sign-in links, and attempts to sign in (S79-S81). Index: primary keys, access_expires.
-- Locks: the rows that are written, by key, so that no two wait for each other.

-- name: now
SELECT {schema}.now_or($1)

-- name: lock
-- $1, $2 kinds and names. Nothing holds a row that is not there: `write` sees it if another was faster.
SELECT kind, name, record, revision, created_at, seen_at, expires_at FROM {schema}.access
WHERE (kind, name) IN (SELECT * FROM unnest($1::text[], $2::text[])) ORDER BY kind, name FOR UPDATE

-- name: read
SELECT kind, name, record, revision, created_at, seen_at, expires_at FROM {schema}.access
WHERE (kind, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))

-- name: page
SELECT kind, name, record, revision, created_at, seen_at, expires_at FROM {schema}.access
WHERE kind = $1 AND name > $2 AND (expires_at IS NULL OR expires_at > $4) ORDER BY name LIMIT $3

-- name: write
-- $8 the revision that was locked, NULL if there was no row.
INSERT INTO {schema}.access AS kept (kind, name, record, revision, created_at, seen_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (kind, name) DO UPDATE SET
  record = excluded.record, revision = excluded.revision, created_at = excluded.created_at,
  seen_at = excluded.seen_at, expires_at = excluded.expires_at
WHERE kept.revision = $8::bigint
RETURNING true

-- name: remove
DELETE FROM {schema}.access WHERE kind = $1 AND name = $2

-- name: seen
-- $4 how old a noted use is that is noted again.
UPDATE {schema}.access AS kept SET seen_at = {schema}.now_or($1)
FROM unnest($2::text[], $3::text[]) AS used (kind, name)
WHERE kept.kind = used.kind AND kept.name = used.name AND (expires_at IS NULL OR expires_at > {schema}.now_or($1))
  AND (seen_at IS NULL OR seen_at <= {schema}.now_or($1) - $4::bigint)

-- name: lock_attempts
-- $1 labels in order, $2 the end of a count that begins. Also those that were not there are locked.
INSERT INTO {schema}.sign_in_attempt AS kept (label, count, until)
SELECT label, 0, $2 FROM unnest($1::text[]) AS tried (label)
ON CONFLICT (label) DO UPDATE SET count = kept.count
RETURNING label, count, until

-- name: count
UPDATE {schema}.sign_in_attempt AS kept SET count = counted.count, until = counted.until
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS counted (label, count, until) WHERE kept.label = counted.label

-- name: forgive
UPDATE {schema}.sign_in_attempt SET count = greatest(count - 1, 0) WHERE label = $1

-- name: clean
DELETE FROM {schema}.access WHERE expires_at <= {schema}.now_or($1) RETURNING 1

-- name: clean_attempts
DELETE FROM {schema}.sign_in_attempt WHERE until <= {schema}.now_or($1)
