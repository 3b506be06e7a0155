-- Counting jobs per tenant, queue and state, from where a page before ended; read only as far as a page goes.
-- Parameters: tenant, queue and state of the last count given. Index: turn_tenant, the primary key of tally.
-- Locks: none, a snapshot.

-- name: hot
SELECT tenant, queue, delayed, ready, running FROM turn WHERE (tenant, queue) >= (?1, ?2) ORDER BY tenant, queue

-- name: finished
SELECT tenant, queue, state, jobs FROM tally WHERE (tenant, queue, state) > (?1, ?2, ?3)
ORDER BY tenant, queue, state
