-- Schedules and their slots (S57). Index: primary keys, schedule_next, schedule_of_tenant, schedule_slot_pending,
-- schedule_slot_ended. Locks: the rows that are written, by name or instant, so that no two wait for each other.

-- name: now
SELECT {schema}.now_or($1)

-- name: lock
-- $1 names. Nothing holds a row that is not there: `insert` sees it if another was faster.
SELECT name, record FROM {schema}.schedule WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE

-- name: read
SELECT name, record FROM {schema}.schedule WHERE name = ANY ($1::text[])

-- name: page
-- $1 after this name, $2 how many, $3 the tenant, NULL for all.
SELECT record FROM {schema}.schedule WHERE name > $1 AND ($3::text IS NULL OR tenant = $3) ORDER BY name LIMIT $2

-- name: insert
-- $1 names in order, $2 tenants, $3 the next instants, $4 revisions, $5 records.
INSERT INTO {schema}.schedule (name, tenant, next_at, revision, record)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[])
ON CONFLICT (name) DO NOTHING RETURNING name

-- name: update
-- As `insert`, of rows that are locked.
UPDATE {schema}.schedule AS kept
SET tenant = new.tenant, next_at = new.next_at, revision = new.revision, record = new.record
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) AS new (name, tenant, next_at, revision, record)
WHERE kept.name = new.name

-- name: remove
DELETE FROM {schema}.schedule WHERE name = ANY ($1::text[])

-- name: due
-- $1 now, $2 how many, $3 after how many that are left out. First the instant; then schedules that are due, one more than
-- asked for; the first one, if it may be left out; the next one that is not due; and pending slots. One statement, since an
-- idle leader asks again and again.
WITH instant AS MATERIALIZED (SELECT {schema}.now_or($1) AS now)
(SELECT 'now' AS kind, NULL::bytea AS record, now AS at FROM instant)
UNION ALL
(SELECT 'due', record, next_at FROM {schema}.schedule
 WHERE next_at <= (SELECT now FROM instant) ORDER BY next_at, name LIMIT $2::int + 1 OFFSET $3::int)
UNION ALL
(SELECT 'next', NULL, next_at FROM {schema}.schedule
 WHERE $3::int > 0 AND next_at IS NOT NULL ORDER BY next_at, name LIMIT 1)
UNION ALL
(SELECT 'next', NULL, next_at FROM {schema}.schedule
 WHERE next_at > (SELECT now FROM instant) ORDER BY next_at, name LIMIT 1)
UNION ALL
(SELECT 'pending', record, at FROM {schema}.schedule_slot
 WHERE ended_at IS NULL ORDER BY (tenant IS NULL), at, schedule LIMIT $2)

-- name: read_slots
-- $1 schedules, $2 instants.
SELECT schedule, at, record FROM {schema}.schedule_slot
WHERE (schedule, at) IN (SELECT * FROM unnest($1::text[], $2::bigint[]))

-- name: lock_slots
SELECT schedule, at, record FROM {schema}.schedule_slot
WHERE (schedule, at) IN (SELECT * FROM unnest($1::text[], $2::bigint[])) ORDER BY schedule, at FOR UPDATE

-- name: write_slots
-- $1 schedules, $2 instants, $3 tenants, $4 when they ended, $5 records.
INSERT INTO {schema}.schedule_slot (schedule, at, tenant, ended_at, record)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bytea[])
ON CONFLICT (schedule, at) DO UPDATE
SET tenant = excluded.tenant, ended_at = excluded.ended_at, record = excluded.record

-- name: slots
-- $1 the schedule, $2 before this instant, $3 how many, $4 the tenant, NULL for all.
SELECT record FROM {schema}.schedule_slot
WHERE schedule = $1 AND at < $2 AND ($4::text IS NULL OR tenant = $4) ORDER BY at DESC LIMIT $3

-- name: clean
-- $1 now, $2 how long slots are kept, $3 how many at most.
DELETE FROM {schema}.schedule_slot WHERE (schedule, at) IN (
  SELECT schedule, at FROM {schema}.schedule_slot
  WHERE ended_at <= {schema}.now_or($1) - $2::bigint ORDER BY ended_at LIMIT $3 FOR UPDATE SKIP LOCKED
) RETURNING 1
