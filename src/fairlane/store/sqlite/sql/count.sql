-- Purpose: count jobs per tenant, queue and state, in that order. The caller stops reading when its page is
-- full.
-- Parameters: ?1 tenant, ?2 queue, ?3 state of the last count of the page before.
-- Index: tenant_queue_tenant, the primary key of tally. Locks: none (a snapshot).

-- name: hot
SELECT tenant, queue, delayed, ready, running FROM tenant_queue WHERE (tenant, queue) >= (?1, ?2) ORDER BY tenant, queue

-- name: finished
SELECT tenant, queue, state, jobs FROM tally WHERE (tenant, queue, state) > (?1, ?2, ?3)
ORDER BY tenant, queue, state
