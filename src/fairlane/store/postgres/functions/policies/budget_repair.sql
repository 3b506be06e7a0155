-- Compare what the accounts of a budget reserve with the claims that run under them, and restore it (S125). Whoever writes an
-- account holds the lock of the gates, and what became of claims may be reported and not counted yet: such a claim still holds
-- what it held.
-- Parameters: `p_only` is the account of one tenant, NULL all. Index: the primary keys, job_id, strand_budget. Locks: that of
-- the gates, then that of policy changes.

-- The claims that hold something, and whether their jobs run under them.
CREATE OR REPLACE FUNCTION {schema}.budget_claims_under(p_budget text, p_only text)
RETURNS TABLE (job uuid, fence bigint, account text, held bigint, runs boolean) LANGUAGE sql STABLE AS $$
  SELECT c.job, c.fence, c.account, greatest(c.estimate - c.spent, 0),
         EXISTS (SELECT 1 FROM {schema}.job j WHERE j.id = c.job AND j.state = {running} AND j.fence = c.fence)
           OR EXISTS (SELECT 1 FROM {schema}.budget_report r WHERE r.job = c.job AND r.fence = c.fence)
  FROM {schema}.budget_claim c WHERE c.budget = p_budget AND c.ended_at IS NULL AND (p_only IS NULL OR c.account = p_only)
$$;

-- The accounts for whose room strands wait that nobody has woken yet.
CREATE OR REPLACE FUNCTION {schema}.waiting_for_budget(p_now bigint, p_budget text, p_only text) RETURNS SETOF text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_rule {schema}.effective_rule;
BEGIN
  SELECT * INTO v_rule FROM {schema}.rule_of(p_now, 'budget', p_budget);
  RETURN QUERY SELECT DISTINCT CASE WHEN v_rule.per_tenant THEN s.tenant ELSE '' END FROM {schema}.strand s
    WHERE s.parked = 'budget' AND s.subject = 'budget ' || p_budget AND (s.parked_until IS NULL OR s.parked_until > p_now)
      AND (p_only IS NULL OR (v_rule.per_tenant AND s.tenant = p_only))
      AND NOT EXISTS (
        SELECT 1 FROM {schema}.policy_change c WHERE c.kind = 'budget' AND c.name = p_budget AND c.id > coalesce(
          (SELECT a.change_id FROM {schema}.applied_policy_change a WHERE a.queue = s.queue), 0));
END $$;

-- What does not fit: (account, what, stored, right). One statement reads all of it at one instant; the caller holds the lock of the
-- gates. The first row is the number of claims that run, or NULL for more than `p_limit` that hold something: then nothing else.
CREATE OR REPLACE FUNCTION {schema}.compare_budget(p_now bigint, p_budget text, p_only text, p_limit int)
RETURNS TABLE (account text, place text, stored bigint, fitting bigint) LANGUAGE sql STABLE AS $$
  WITH claims AS MATERIALIZED (SELECT * FROM {schema}.budget_claims_under(p_budget, p_only)),
  size AS (SELECT count(*) <= p_limit AS is_comparable, count(*) FILTER (WHERE runs) AS running FROM claims),
  held AS (SELECT account, coalesce(sum(held) FILTER (WHERE runs), 0)::bigint AS held,
                  count(*) FILTER (WHERE NOT runs) AS behind FROM claims GROUP BY account),
  kept AS (SELECT tenant AS account, reserved, is_waited_for FROM {schema}.budget_account
           WHERE budget = p_budget AND (p_only IS NULL OR tenant = p_only))
  SELECT NULL, 'size', CASE WHEN is_comparable THEN running END, NULL::bigint FROM size
  UNION ALL
  SELECT coalesce(kept.account, held.account), 'reserved', coalesce(kept.reserved, 0), coalesce(held.held, 0)
  FROM kept FULL JOIN held ON kept.account = held.account, size
  WHERE is_comparable AND coalesce(kept.reserved, 0) <> coalesce(held.held, 0)
  UNION ALL
  SELECT held.account, 'claims', held.behind, 0 FROM held, size WHERE is_comparable AND held.behind > 0
  UNION ALL
  SELECT w.account, 'waiting', 0, 1 FROM {schema}.waiting_for_budget(p_now, p_budget, p_only) AS w (account), size
  WHERE is_comparable AND NOT EXISTS (SELECT 1 FROM kept WHERE kept.account = w.account AND kept.is_waited_for)
$$;

-- Count claims that are left behind as ended by somebody else (S113), make the reservations anew, and wake who waits. Returns the
-- queues to wake.
CREATE OR REPLACE FUNCTION {schema}.restore_budget(p_now bigint, p_budget text, p_only text, p_accounts text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  a {schema}.budget_account;
  v_account text;
BEGIN
  INSERT INTO {schema}.budget_report (at, job, fence, kind, total)
  SELECT p_now, job, fence, 'ended', 0 FROM {schema}.budget_claims_under(p_budget, p_only) WHERE NOT runs;
  WHILE EXISTS (SELECT 1 FROM {schema}.budget_report) LOOP
    PERFORM {schema}.count_budget_reports();
  END LOOP;
  FOREACH v_account IN ARRAY p_accounts LOOP
    a := {schema}.budget_account_at(p_now, p_budget, v_account);
    a.reserved := (SELECT coalesce(sum(held), 0) FROM {schema}.budget_claims_under(p_budget, v_account));
    a.is_waited_for := false;
    PERFORM {schema}.write_budget_account(a);
  END LOOP;
  PERFORM pg_advisory_xact_lock(hashtextextended($s${schema} policies$s$, 0));
  INSERT INTO {schema}.policy_change (at, kind, name) VALUES (p_now, 'budget', p_budget);
  RETURN array(SELECT DISTINCT queue FROM {schema}.strand WHERE parked = 'budget' AND subject = 'budget ' || p_budget);
END $$;
