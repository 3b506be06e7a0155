-- Purpose: budgets: accounts, claims, who has spent what.
-- Parameters: ?1 the budget, unless stated.
-- Index: the primary keys, budget_claim_ended.
-- Locks: the write lock; none for page, spend and periods.

-- name: add_period
INSERT INTO budget_period (budget, starts_at) VALUES (?1, ?2)

-- name: drop_periods
DELETE FROM budget_period WHERE budget = ?1

-- name: period
-- When the period of an instant (?2) began, and when it ends.
SELECT (SELECT max(starts_at) FROM budget_period WHERE budget = ?1 AND starts_at <= ?2),
       (SELECT min(starts_at) FROM budget_period WHERE budget = ?1 AND starts_at > ?2)

-- name: account
SELECT starts_at, ends_at, spent, reserved, told, is_waited_for FROM budget_account WHERE budget = ?1 AND tenant = ?2

-- name: write_account
INSERT INTO budget_account (budget, tenant, starts_at, ends_at, spent, reserved, told, is_waited_for)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (budget, tenant) DO UPDATE SET starts_at = excluded.starts_at, ends_at = excluded.ends_at,
  spent = excluded.spent, reserved = excluded.reserved, told = excluded.told, is_waited_for = excluded.is_waited_for

-- name: page
-- Accounts after a tenant (?2), of one tenant (?3) or of all, at most ?4.
SELECT tenant, starts_at, ends_at, spent, reserved, told, is_waited_for FROM budget_account
WHERE budget = ?1 AND (?2 IS NULL OR tenant > ?2) AND (?3 IS NULL OR tenant = ?3) ORDER BY tenant LIMIT ?4

-- name: add_claim
INSERT INTO budget_claim (job, fence, budget, account, task, tenant, created_by, estimate, spent, period, ended_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (job, fence) DO UPDATE SET spent = excluded.spent, period = excluded.period, ended_at = excluded.ended_at

-- name: claims
-- The claims of the jobs in a JSON array of ids (?1), in hexadecimal digits.
SELECT job, fence, budget, account, task, tenant, created_by, estimate, spent, period, ended_at
FROM json_each(?1) AS asked CROSS JOIN budget_claim ON budget_claim.job = unhex(asked.value)

-- name: drop_claim
DELETE FROM budget_claim WHERE job = ?1 AND fence = ?2

-- name: spent_more
UPDATE budget_spend SET spent = spent + ?6
WHERE budget = ?1 AND starts_at = ?2 AND task = ?3 AND tenant = ?4 AND created_by = ?5 RETURNING 1

-- name: spenders
SELECT count(*) FROM (SELECT 1 FROM budget_spend WHERE budget = ?1 AND starts_at = ?2 LIMIT ?3)

-- name: first_spent
INSERT INTO budget_spend (budget, starts_at, task, tenant, created_by, spent) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (budget, starts_at, task, tenant, created_by) DO UPDATE SET spent = spent + excluded.spent

-- name: spend
-- What was spent in a period (?2), by one tenant (?3) or by all.
SELECT task, tenant, created_by, spent FROM budget_spend
WHERE budget = ?1 AND starts_at = ?2 AND (?3 IS NULL OR tenant = ?3)
ORDER BY spent DESC, task, tenant, created_by

-- name: periods
SELECT DISTINCT starts_at FROM budget_spend WHERE budget = ?1 ORDER BY starts_at DESC

-- name: drop_old_spend
DELETE FROM budget_spend WHERE budget = ?1 AND starts_at < ?2

-- name: drop_old_claims
DELETE FROM budget_claim WHERE ended_at < ?1

-- name: add_to_others
-- Add what a tenant (?1) has spent to what is counted together (?2).
INSERT INTO budget_spend (budget, starts_at, task, tenant, created_by, spent)
SELECT budget, starts_at, ?2, ?2, ?2, sum(spent) FROM budget_spend WHERE tenant = ?1 GROUP BY budget, starts_at
ON CONFLICT (budget, starts_at, task, tenant, created_by) DO UPDATE SET spent = spent + excluded.spent

-- name: drop_spend_of
DELETE FROM budget_spend WHERE tenant = ?1

-- name: drop_ended_claims_of
DELETE FROM budget_claim WHERE ended_at IS NOT NULL AND tenant = ?1

-- name: drop_accounts_of
DELETE FROM budget_account WHERE budget IN (SELECT budget FROM budget_period) AND tenant = ?1

-- name: claims_under
-- The claims of a budget that hold something, in one account (?2) or in all, at most ?3; whether their jobs run under them.
SELECT job, fence, account, estimate, spent, EXISTS (
  SELECT 1 FROM body CROSS JOIN live USING (seq)
  WHERE body.id = budget_claim.job AND live.state = {running} AND live.fence = budget_claim.fence)
FROM budget_claim WHERE budget = ?1 AND ended_at IS NULL AND (?2 IS NULL OR account = ?2) LIMIT ?3

-- name: accounts_under
-- The accounts of a budget, in one (?2) or in all: what they reserve, and whether somebody waits.
SELECT tenant, reserved, is_waited_for FROM budget_account WHERE budget = ?1 AND (?2 IS NULL OR tenant = ?2)

-- name: waiting_for
-- The tenants of strands that wait for room in a budget and are not due to be unparked at ?2.
SELECT DISTINCT tenant_queue.tenant FROM strand CROSS JOIN tenant_queue USING (tenant_queue)
WHERE strand.parked = 'budget budget ' || ?1 AND strand.parked >= 'budget ' AND strand.parked < 'budget!'
  AND (strand.parked_until IS NULL OR strand.parked_until > ?2)
