-- Budgets (S59, S113-S115): accounts, whether a job may start, what its claim reserves. As `model.policy.budget` decides.
-- Parameters: `p_rule` is the budget's rule in force. Index: primary keys. Locks: whoever writes an account holds `lock_gates`.

-- An account in the period of an instant, whether or not it has a row.
CREATE OR REPLACE FUNCTION {schema}.budget_account_at(p_at bigint, p_budget text, p_tenant text)
RETURNS {schema}.budget_account LANGUAGE plpgsql AS $$
DECLARE
  a {schema}.budget_account;
  v_starts_at bigint;
  v_ends_at bigint;
BEGIN
  SELECT * INTO a FROM {schema}.budget_account WHERE budget = p_budget AND tenant = p_tenant;
  IF a.budget IS NULL THEN
    a := row(p_budget, p_tenant, 0, 0, 0, 0, 0, false);
  END IF;
  IF a.ends_at <= p_at THEN
    v_starts_at := (SELECT max(starts_at) FROM {schema}.budget_period WHERE budget = p_budget AND starts_at <= p_at);
    v_ends_at := (SELECT min(starts_at) FROM {schema}.budget_period WHERE budget = p_budget AND starts_at > p_at);
    IF v_starts_at IS NOT NULL AND v_ends_at IS NOT NULL THEN
      a.starts_at := v_starts_at;
      a.ends_at := v_ends_at;
      a.spent := 0;
      a.told := 0;
    END IF;
  END IF;
  RETURN a;
END $$;

-- Write an account. What is too old goes when a period begins.
CREATE OR REPLACE FUNCTION {schema}.write_budget_account(a {schema}.budget_account) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_before bigint := (SELECT starts_at FROM {schema}.budget_account WHERE budget = a.budget AND tenant = a.tenant);
BEGIN
  IF v_before IS DISTINCT FROM a.starts_at THEN
    DELETE FROM {schema}.budget_spend WHERE budget = a.budget AND starts_at < a.starts_at - {spend_kept};
    DELETE FROM {schema}.budget_claim WHERE ended_at < a.starts_at - {claims_kept};
  END IF;
  INSERT INTO {schema}.budget_account VALUES (a.*)
  ON CONFLICT (budget, tenant) DO UPDATE SET starts_at = excluded.starts_at, ends_at = excluded.ends_at,
    spent = excluded.spent, reserved = excluded.reserved, told = excluded.told, is_waited_for = excluded.is_waited_for;
END $$;

-- Whether a job has room beside what is used already.
CREATE OR REPLACE FUNCTION {schema}.budget_has_room(p_rule {schema}.effective_rule, p_used bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT p_used < p_rule.ceiling AND p_used + p_rule.estimate <= p_rule.ceiling
$$;

-- Append the events of an account that were not told in this period.
CREATE OR REPLACE FUNCTION {schema}.tell_budget(p_at bigint, p_rule {schema}.effective_rule, INOUT a {schema}.budget_account)
LANGUAGE plpgsql AS $$
DECLARE
  is_spent boolean := NOT {schema}.budget_has_room(p_rule, a.spent);
  v_reached int := (SELECT count(*) FROM unnest(p_rule.alert_at) AS u (share)
                    WHERE is_spent OR a.spent * 100 >= p_rule.ceiling * share);
BEGIN
  IF v_reached <= a.told THEN
    RETURN;
  END IF;
  INSERT INTO {schema}.pending_entry (journal, at, kind, tenant, subject, count, body)
  SELECT 'events', p_at, CASE WHEN share >= 100 THEN {budget_spent} ELSE {budget_alert} END, nullif(a.tenant, ''),
         'budget ' || a.budget, 1,
         convert_to('{"budget":' || to_json(a.budget)::text || ',"ceiling":' || p_rule.ceiling
           || ',"currency":' || to_json(p_rule.currency)::text || ',"period_end":' || a.ends_at
           || ',"period_start":' || a.starts_at || ',"share":' || share || ',"spent":' || a.spent || '}', 'UTF8')
  FROM unnest(p_rule.alert_at[a.told + 1:v_reached]) WITH ORDINALITY AS u (share, ord) ORDER BY ord;
  a.told := v_reached;
END $$;

-- What holds back a tenant's jobs of a task under a budget: `reason` is NULL if nothing does. `is_over`: a job that starts is
-- dead, because the budget is spent.
CREATE OR REPLACE FUNCTION {schema}.budget_block(
  p_now bigint, p_budget text, p_tenant text, OUT reason text, OUT until bigint, OUT is_over boolean
) LANGUAGE plpgsql AS $$
DECLARE
  v_rule {schema}.effective_rule;
  a {schema}.budget_account;
BEGIN
  is_over := false;
  SELECT * INTO v_rule FROM {schema}.rule_of(p_now, 'budget', p_budget);
  IF v_rule.ceiling IS NULL THEN
    RETURN;
  END IF;
  a := {schema}.budget_account_at(p_now, p_budget, CASE WHEN v_rule.per_tenant THEN p_tenant ELSE '' END);
  IF {schema}.budget_has_room(v_rule, a.spent + a.reserved) THEN
    RETURN;
  END IF;
  is_over := v_rule.on_spent = 'fail' AND NOT {schema}.budget_has_room(v_rule, a.spent);
  IF NOT is_over THEN
    reason := 'budget';
    until := least(CASE WHEN p_now < a.ends_at THEN a.ends_at END, nullif(v_rule.until, {forever}));
  END IF;
END $$;

-- Note that a job found no room: its strand waits, or it is dead because of it.
CREATE OR REPLACE FUNCTION {schema}.note_no_room(p_now bigint, p_budget text, p_tenant text, p_is_waiting boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_rule {schema}.effective_rule;
  a {schema}.budget_account;
BEGIN
  SELECT * INTO v_rule FROM {schema}.rule_of(p_now, 'budget', p_budget);
  a := {schema}.budget_account_at(p_now, p_budget, CASE WHEN v_rule.per_tenant THEN p_tenant ELSE '' END);
  a := {schema}.tell_budget(p_now, v_rule, a);
  a.is_waited_for := a.is_waited_for OR p_is_waiting;
  PERFORM {schema}.write_budget_account(a);
END $$;

-- Reserve the estimate for a job that is about to start: under the fence that it will have.
CREATE OR REPLACE FUNCTION {schema}.reserve_budget(p_now bigint, p_budget text, p_tid tid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_rule {schema}.effective_rule;
  a {schema}.budget_account;
  j record;
BEGIN
  SELECT * INTO v_rule FROM {schema}.rule_of(p_now, 'budget', p_budget);
  IF v_rule.ceiling IS NULL THEN
    RETURN;
  END IF;
  SELECT id, greatest(fence + 1, p_now) AS fence, task, tenant, coalesce(created_by, '') AS created_by INTO j
  FROM {schema}.job WHERE ctid = p_tid;
  a := {schema}.budget_account_at(p_now, p_budget, CASE WHEN v_rule.per_tenant THEN j.tenant ELSE '' END);
  a.reserved := a.reserved + v_rule.estimate;
  PERFORM {schema}.write_budget_account(a);
  INSERT INTO {schema}.budget_claim (job, fence, budget, account, task, tenant, created_by, estimate, spent, period)
  VALUES (j.id, j.fence, p_budget, a.tenant, j.task, j.tenant, j.created_by, v_rule.estimate, 0, a.starts_at);
END $$;
