-- Purpose: schedules and their slots (S57).
-- Parameters: named by each statement. Index: the primary keys, schedule_next, schedule_of_tenant, schedule_slot_pending,
-- schedule_slot_ended. Locks: the write lock for writes.

-- name: read
SELECT record FROM schedule WHERE name = ?1

-- name: page
-- ?1 after this name, ?2 how many.
SELECT record FROM schedule WHERE name > ?1 ORDER BY name LIMIT ?2

-- name: page_of_tenant
-- ?1 after this name, ?2 how many, ?3 the tenant.
SELECT record FROM schedule WHERE tenant = ?3 AND name > ?1 ORDER BY name LIMIT ?2

-- name: write
INSERT INTO schedule (name, tenant, next_at, revision, record) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET
  tenant = excluded.tenant, next_at = excluded.next_at, revision = excluded.revision, record = excluded.record

-- name: remove
DELETE FROM schedule WHERE name = ?1

-- name: due
-- ?1 now, ?2 how many, ?3 after how many that are left out.
SELECT record FROM schedule WHERE next_at <= ?1 ORDER BY next_at, name LIMIT ?2 OFFSET ?3

-- name: next
-- ?1 how many are left out: those that are in the answer, if they are the first ones.
SELECT next_at FROM schedule WHERE next_at IS NOT NULL ORDER BY next_at, name LIMIT 1 OFFSET ?1

-- name: pending
-- ?1 how many.
SELECT record FROM schedule_slot WHERE ended_at IS NULL ORDER BY tenant IS NULL, at, schedule LIMIT ?1

-- name: slot
SELECT record FROM schedule_slot WHERE schedule = ?1 AND at = ?2

-- name: write_slot
INSERT INTO schedule_slot (schedule, at, tenant, ended_at, record) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (schedule, at) DO UPDATE SET
  tenant = excluded.tenant, ended_at = excluded.ended_at, record = excluded.record

-- name: slots
-- ?1 the schedule, ?2 before this instant, ?3 how many.
SELECT record FROM schedule_slot WHERE schedule = ?1 AND at < ?2 ORDER BY at DESC LIMIT ?3

-- name: slots_of_tenant
-- ?4 the tenant.
SELECT record FROM schedule_slot WHERE schedule = ?1 AND at < ?2 AND tenant = ?4 ORDER BY at DESC LIMIT ?3

-- name: clean
-- ?1 ended until then, ?2 how many.
DELETE FROM schedule_slot WHERE (schedule, at) IN (
  SELECT schedule, at FROM schedule_slot WHERE ended_at <= ?1 ORDER BY ended_at LIMIT ?2
) RETURNING 1
