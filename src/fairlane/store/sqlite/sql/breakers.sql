-- Purpose: states of circuit breakers, and how many strands wait in the line of one.
-- Parameters: name and tenant of the breaker, '' for all tenants; the name of the line.
-- Index: the primary key, breaker_not_closed, strand_gate, the key of job. Locks: the write lock for writes.

-- name: not_closed
SELECT DISTINCT name FROM breaker WHERE slots IS NOT NULL

-- name: open
-- ?1 how many at most.
SELECT name, tenant FROM breaker WHERE slots IS NOT NULL ORDER BY name LIMIT ?1

-- name: read
SELECT state FROM breaker WHERE name = ?1 AND tenant = ?2

-- name: write
INSERT INTO breaker (name, tenant, slots, state) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name, tenant) DO UPDATE SET slots = excluded.slots, state = excluded.state

-- name: page
-- ?1 one name or NULL; ?2, ?3 the key after which to read; ?4 how many.
SELECT name, tenant FROM breaker WHERE (?1 IS NULL OR name = ?1) AND (name, tenant) > (?2, ?3)
ORDER BY name, tenant LIMIT ?4

-- name: waiting
SELECT count(*) FROM (SELECT 1 FROM strand WHERE gate = ?1 LIMIT ?2)

-- name: running
-- ?1 the ids, a JSON array of hexadecimal text.
SELECT hex(body.id) FROM body JOIN live USING (seq)
WHERE body.id IN (SELECT unhex(value) FROM json_each(?1)) AND live.state = {running}
