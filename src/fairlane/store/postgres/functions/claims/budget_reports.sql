-- What became of claims under a budget (S113). Settle, renew and whoever ends a claim append a report, without a lock: a
-- handler's own transaction may stay open for long. The next claim, promote or reader counts the reports, under the gates'
-- lock, each as of its own instant.
-- Index: the primary keys, strand_budget. Locks: `report_budgets` none; `count_budget_reports` that of the gates, then that of
-- policy changes, behind which nobody waits for another lock.

-- Append a report of each of these claims that is under a budget; return the queues in which strands wait for its room.
CREATE OR REPLACE FUNCTION {schema}.report_budgets(
  p_at bigint, p_tenant text, p_id uuid[], p_fence bigint[], p_total bigint[], p_kind text
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  v_subjects text[];
BEGIN
  IF NOT EXISTS (SELECT 1 FROM {schema}.budget_claim) THEN
    RETURN '{}';
  END IF;
  WITH told AS (
    INSERT INTO {schema}.budget_report (at, job, fence, kind, total)
    SELECT p_at, c.job, c.fence, p_kind, coalesce(u.total, 0) FROM unnest(p_id, p_fence, p_total) u (id, fence, total)
    JOIN {schema}.budget_claim c ON c.job = u.id AND c.fence = u.fence
    WHERE p_tenant IS NULL OR c.tenant = p_tenant
    RETURNING job, fence)
  SELECT array_agg(DISTINCT 'budget ' || c.budget) INTO v_subjects FROM told JOIN {schema}.budget_claim c USING (job, fence);
  IF v_subjects IS NULL OR p_kind = 'renewed' THEN
    RETURN '{}';
  END IF;
  RETURN array(SELECT DISTINCT queue FROM {schema}.strand WHERE parked = 'budget' AND subject = ANY (v_subjects));
END $$;

-- Count what was reported, at most a thousand; let claims unpark who waits where room has come back.
CREATE OR REPLACE FUNCTION {schema}.count_budget_reports() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r {schema}.budget_report;
  v_room_at bigint;
  v_woken text[] := '{}';
BEGIN
  IF NOT EXISTS (SELECT 1 FROM {schema}.budget_report) THEN
    RETURN;
  END IF;
  PERFORM {schema}.lock_gates();
  FOR r IN SELECT * FROM {schema}.budget_report ORDER BY id LIMIT 1000 LOOP
    DELETE FROM {schema}.budget_report WHERE id = r.id;
    v_woken := v_woken || {schema}.count_budget_report(r);
    v_room_at := r.at;
  END LOOP;
  IF cardinality(v_woken) > 0 THEN
    PERFORM pg_advisory_xact_lock(hashtextextended($s${schema} policies$s$, 0));
    INSERT INTO {schema}.policy_change (at, kind, name) SELECT DISTINCT v_room_at, 'budget', name FROM unnest(v_woken) AS u (name);
  END IF;
END $$;

-- One report; return the budget if its room is waited for.
CREATE OR REPLACE FUNCTION {schema}.count_budget_report(r {schema}.budget_report) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  c {schema}.budget_claim;
  v_rule {schema}.effective_rule;
  a {schema}.budget_account;
  was_reserved bigint;
  v_more bigint;
  is_over boolean := r.kind <> 'renewed';
  v_woken text[] := '{}';
BEGIN
  SELECT * INTO c FROM {schema}.budget_claim WHERE job = r.job AND fence = r.fence;
  IF c.job IS NULL OR (c.ended_at IS NOT NULL AND r.kind <> 'settled') THEN
    RETURN v_woken;
  END IF;
  SELECT * INTO v_rule FROM {schema}.rule_of(r.at, 'budget', c.budget);
  a := {schema}.budget_account_at(r.at, c.budget, c.account);
  was_reserved := CASE WHEN c.ended_at IS NULL THEN greatest(c.estimate - c.spent, 0) ELSE 0 END;
  v_more := CASE WHEN r.kind = 'ended' THEN greatest(c.estimate, c.spent) ELSE least(r.total, {largest_amount}) END - c.spent;
  IF c.ended_at IS NULL OR c.period <> a.starts_at THEN
    v_more := greatest(v_more, 0);
  END IF;
  c.spent := c.spent + v_more;
  a.spent := a.spent + v_more;
  a.reserved := a.reserved - was_reserved
    + CASE WHEN is_over OR c.ended_at IS NOT NULL THEN 0 ELSE greatest(c.estimate - c.spent, 0) END;
  IF v_rule.ceiling IS NOT NULL THEN
    a := {schema}.tell_budget(r.at, v_rule, a);
  END IF;
  IF is_over AND a.is_waited_for THEN
    v_woken := ARRAY[c.budget];
    a.is_waited_for := false;
  END IF;
  PERFORM {schema}.write_budget_account(a);
  IF r.kind = 'settled' THEN
    DELETE FROM {schema}.budget_claim WHERE job = c.job AND fence = c.fence;
  ELSE
    UPDATE {schema}.budget_claim SET spent = c.spent, period = a.starts_at,
                                     ended_at = CASE WHEN r.kind = 'ended' THEN r.at END
    WHERE job = c.job AND fence = c.fence;
  END IF;
  IF v_more <> 0 THEN
    PERFORM {schema}.add_budget_spend(c.budget, a.starts_at, c.task, c.tenant, c.created_by, v_more);
  END IF;
  RETURN v_woken;
END $$;

-- Add to who has spent what; beyond so many, all others are one.
CREATE OR REPLACE FUNCTION {schema}.add_budget_spend(
  p_budget text, p_starts_at bigint, p_task text, p_tenant text, p_created_by text, p_more bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.budget_spend SET spent = spent + p_more
  WHERE budget = p_budget AND starts_at = p_starts_at AND task = p_task AND tenant = p_tenant AND created_by = p_created_by;
  IF FOUND THEN
    RETURN;
  END IF;
  IF (SELECT count(*) FROM (SELECT 1 FROM {schema}.budget_spend WHERE budget = p_budget AND starts_at = p_starts_at
                            LIMIT {max_spenders}) known) = {max_spenders} THEN
    p_task := {others};
    p_tenant := {others};
    p_created_by := {others};
  END IF;
  INSERT INTO {schema}.budget_spend VALUES (p_budget, p_starts_at, p_task, p_tenant, p_created_by, p_more)
  ON CONFLICT (budget, starts_at, task, tenant, created_by) DO UPDATE SET spent = budget_spend.spent + excluded.spent;
END $$;
