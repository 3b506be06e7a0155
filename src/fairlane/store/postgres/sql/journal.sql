-- The journals. The functions in functions/journal/ name their indexes and locks; the statements here use the primary keys of
-- `pending_entry`, `entry` and `journal_end` and entry_tenant, and lock nothing. $1 is the journal.

-- name: append
SELECT {schema}.append_entries($1::bigint, $2::text, $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bytea[])

-- name: pending
-- $2 tenant or null, $3 how many.
SELECT place, at, kind, tenant, subject, count, body FROM {schema}.pending_entry
WHERE journal = $1 AND ($2::text IS NULL OR tenant = $2) ORDER BY journal, place LIMIT $3

-- name: end
-- $2 now or null. Always one row.
SELECT coalesce(e.revision, 0), coalesce(e.first, 0), coalesce(e.last, 0), coalesce(e.memory, ''), {schema}.now_or($2::bigint)
FROM (SELECT) one LEFT JOIN {schema}.journal_end e ON e.journal = $1

-- name: lock
SELECT revision, first, last, memory FROM {schema}.lock_journal($1::text)

-- name: number
SELECT {schema}.number_entries($1::text, $2::bigint[], $3::bytea, $4::bigint[], $5::bigint[], $6::text[], $7::text[],
  $8::text[], $9::bigint[], $10::bytea[], $11::bytea[])

-- name: trim
SELECT {schema}.trim_entries($1::text, $2::bigint, $3::int, $4::bytea)

-- name: page
-- $2 and $3 the numbers after and before which to read, $4 tenant, $5 how many rows are read, $6 kinds, $7 subject, $8 since,
-- $9 until, $10 how many of those that match; NULL matches everything.
SELECT number, at, kind, tenant, subject, count, body, seal FROM ({chunk}) chunk
WHERE ($6::text[] IS NULL OR kind = ANY ($6)) AND ($7::text IS NULL OR subject = $7)
  AND ($8::bigint IS NULL OR at >= $8) AND ($9::bigint IS NULL OR at < $9)
LIMIT $10::int

-- name: edge
-- The number of the last row that is read; none if there are fewer.
SELECT number FROM ({chunk}) chunk OFFSET $5 - 1

-- name: chunk
SELECT * FROM {schema}.entry WHERE journal = $1 AND number > $2::bigint AND number < $3::bigint AND $4::text IS NULL
ORDER BY journal, number {direction} LIMIT $5::bigint

-- name: chunk_of_tenant
SELECT * FROM {schema}.entry WHERE journal = $1 AND tenant = $4::text AND number > $2::bigint AND number < $3::bigint
ORDER BY journal, tenant, number {direction} LIMIT $5::bigint
