-- Claim and promote: calls of functions/claims/claim.sql and promote.sql, which name their indexes and locks.

-- name: claim
-- $1 now (NULL except in tests), $2 worker, $3 lease, $4 queue, $5 limit of the queue, $6 what is left of the total,
-- $7 headroom, $8 only this tenant, $9 is again, $10 parked so far, $11 unparked so far, $12 ahead.
SELECT {record}, next_due_at, is_partial, parked, unparked, is_ahead_cut, is_over_budget, permits, open_breakers
FROM {schema}.claim($1, $2, $3, $4, $5, $6, $7, false, $8, $9, $10, $11, $12)

-- name: lock_queue
SELECT {schema}.lock_queue($1)

-- name: check_queues
SELECT queue, is_busy, next_due_at FROM {schema}.check_queues($1, $2)

-- name: promote_plan
SELECT queue, due, is_more FROM {schema}.promote_plan($1, $2)

-- name: promote
SELECT promoted, is_any, is_partial, next_due_at FROM {schema}.promote($1, $2, $3)
