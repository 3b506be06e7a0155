-- Call the functions of claims and of the pass that keeps queues moving.

-- name: claim
SELECT {hot}, is_alone FROM {s}.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)

-- name: look
SELECT queue, is_busy, next_due_at FROM {s}.look($1, $2)

-- name: promote_plan
SELECT queue, due, is_more FROM {s}.promote_plan($1, $2)

-- name: promote
SELECT promoted, is_any, is_partial, next_due_at FROM {s}.promote($1, $2, $3)
