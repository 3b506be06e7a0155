-- Budgets as they are read (S59, S114), and what a tenant leaves when it is forgotten (S52). What was reported is counted
-- first. Index: the primary keys, budget_claim_ended. Locks: those of `count_budget_reports`; `forget_spend`, `forget_claims`
-- and `forget_accounts` after `lock_gates`; the others none.

-- name: count_reports
SELECT {schema}.count_budget_reports()

-- name: now
SELECT {schema}.now_or($1::bigint)

-- name: accounts
-- $2 the budget, $3 the tenant after which to begin, $4 a tenant or NULL, $5 how many.
SELECT now.tenant, now.starts_at, now.ends_at, now.spent, now.reserved, now.told, now.is_waited_for
FROM (SELECT tenant FROM {schema}.budget_account
      WHERE budget = $2 AND ($3::text IS NULL OR tenant > $3) AND ($4::text IS NULL OR tenant = $4)
      ORDER BY budget, tenant LIMIT $5) AS found
CROSS JOIN LATERAL {schema}.budget_account_at($1::bigint, $2, found.tenant) AS now ORDER BY now.tenant

-- name: block
SELECT reason, until FROM {schema}.budget_block({schema}.now_or($1::bigint), $2, $3)

-- name: periods
SELECT DISTINCT starts_at FROM {schema}.budget_spend WHERE budget = $1 ORDER BY starts_at DESC

-- name: spend
-- $2 the period, $3 a tenant or NULL.
SELECT task, tenant, created_by, spent FROM {schema}.budget_spend
WHERE budget = $1 AND starts_at = $2 AND ($3::text IS NULL OR tenant = $3) ORDER BY spent DESC, task, tenant, created_by

-- name: newest_report
SELECT max(id) FROM {schema}.budget_report

-- name: has_reports
SELECT EXISTS (SELECT 1 FROM {schema}.budget_report WHERE id <= $1)

-- name: lock_gates
SELECT {schema}.lock_gates()

-- name: forget_claims
DELETE FROM {schema}.budget_claim WHERE ended_at IS NOT NULL AND tenant = $1

-- name: forget_accounts
DELETE FROM {schema}.budget_account
WHERE budget IN (SELECT budget FROM {schema}.budget_period) AND tenant = $1 AND reserved = 0

-- name: periods_of
SELECT DISTINCT budget, starts_at FROM {schema}.budget_spend WHERE tenant = $1

-- name: forget_spend
-- What a tenant ($1) has spent of a budget ($2) in a period ($3) is counted with what is beyond the bound.
WITH gone AS (DELETE FROM {schema}.budget_spend WHERE budget = $2 AND starts_at = $3 AND tenant = $1 RETURNING spent)
INSERT INTO {schema}.budget_spend (budget, starts_at, task, tenant, created_by, spent)
SELECT $2, $3, {others}, {others}, {others}, sum(spent)::bigint FROM gone HAVING count(*) > 0
ON CONFLICT (budget, starts_at, task, tenant, created_by) DO UPDATE SET spent = budget_spend.spent + excluded.spent

-- name: compare
-- $1 the instant, $2 the budget, $3 the account of one tenant or NULL, $4 how many claims at most.
SELECT account, place, stored, fitting FROM {schema}.compare_budget($1, $2, $3, $4)

-- name: restore
-- $4 the accounts that have a flaw.
SELECT {schema}.restore_budget($1, $2, $3, $4::text[])
