-- What may not run now: pauses, running limits, rates and gates, in the order in which `explain` names them. Asked by
-- `claim_stepwise` of each tenant and each strand that it meets; a whole queue is asked about by `queue_block` (pause.sql).
-- Parameters: `p_has_holds`: there are pauses of tenants or tasks at all. Index: primary keys of hold and effective_rule,
-- rate_state_name, job_gate, job_running. Locks: the caller's queue lock; for tasks with a gate, rate or budget that of the gates;
-- rows of running jobs, SKIP LOCKED.

-- What holds a tenant back, and until when if time alone ends that; `reason` is NULL if nothing does. `p_running`: its claims
-- in this queue, with those of this call.
CREATE OR REPLACE FUNCTION {schema}.tenant_block(
  p_now bigint, p_queue text, p_tenant text, p_limits {schema}.effective_rule, p_running int, p_next_allowed_at bigint,
  p_rate_id text, p_has_holds boolean, OUT reason text, OUT until bigint
) LANGUAGE plpgsql AS $$
BEGIN
  IF p_has_holds THEN
    SELECT 'paused', nullif(h.until, {forever}) INTO reason, until FROM {schema}.hold_of(p_now, 'paused', 'tenant', p_tenant) h;
  END IF;
  IF reason IS NULL AND p_running >= p_limits.running THEN
    reason := 'running_limit';
    until := {schema}.limits_end(p_now, p_queue, p_tenant);
  END IF;
  IF reason IS NULL AND p_limits.rate_every IS NOT NULL THEN
    until := {schema}.rate_block(p_now, p_limits, p_next_allowed_at, p_rate_id, {schema}.limits_end(p_now, p_queue, p_tenant));
    reason := CASE WHEN until IS NOT NULL THEN 'rate' END;
  END IF;
END $$;

-- The same for a strand, by the rules of its task and of the breaker and the gate that they name; also which subject holds it, the
-- rules of the gate, whether the breaker is not closed, and whether the budget is spent, so that a job that starts is dead. `p_taken`: the gates of the jobs that this call has chosen; `p_passed`:
-- those of them that passed a breaker; `p_has_open`: some breaker is not closed.
DROP FUNCTION IF EXISTS {schema}.strand_block(bigint, text, {schema}.effective_rule, text[], boolean);
CREATE OR REPLACE FUNCTION {schema}.strand_block(
  p_now bigint, p_task text, p_tenant text, p_rules {schema}.effective_rule, p_taken text[], p_passed uuid[],
  p_has_holds boolean, p_has_open boolean,
  OUT reason text, OUT subject text, OUT until bigint, OUT gate {schema}.effective_rule, OUT is_guarded boolean,
  OUT is_over boolean
) LANGUAGE plpgsql AS $$
DECLARE
  held record;
BEGIN
  is_guarded := false;
  is_over := false;
  subject := 'task ' || p_task;
  IF p_has_holds THEN
    SELECT 'paused', nullif(h.until, {forever}) INTO reason, until FROM {schema}.hold_of(p_now, 'paused', 'task', p_task) h;
  END IF;
  IF reason IS NULL AND p_has_open AND p_rules.breaker IS NOT NULL THEN
    SELECT * INTO held FROM {schema}.breaker_block(p_now, p_rules.breaker, p_tenant, p_passed);
    is_guarded := held.is_guarded;
    IF held.subject IS NOT NULL THEN
      reason := 'breaker';
      subject := held.subject;
      RETURN; -- without a time: with one, all in the line would wake at once
    END IF;
  END IF;
  IF reason IS NULL AND p_rules.rate_every IS NOT NULL THEN
    until := {schema}.stored_rate_block(p_now, p_rules);
    reason := CASE WHEN until IS NOT NULL THEN 'rate' END;
  END IF;
  IF reason IS NULL AND p_rules.gate IS NOT NULL THEN
    subject := 'gate ' || p_rules.gate;
    SELECT * INTO gate FROM {schema}.rule_of(p_now, 'gate', p_rules.gate);
    IF {schema}.gate_free_slots(p_now, p_rules.gate, p_taken) = 0 THEN
      reason := 'gate';
      until := nullif(gate.until, {forever});
    ELSIF gate.rate_every IS NOT NULL THEN
      until := {schema}.stored_rate_block(p_now, gate);
      reason := CASE WHEN until IS NOT NULL THEN 'rate' END;
    END IF;
  END IF;
  IF reason IS NULL AND p_rules.budget IS NOT NULL THEN
    subject := 'budget ' || p_rules.budget;
    SELECT b.reason, b.until, b.is_over INTO reason, until, is_over FROM {schema}.budget_block(p_now, p_rules.budget, p_tenant) b;
    IF reason IS NOT NULL THEN
      PERFORM {schema}.note_no_room(p_now, p_rules.budget, p_tenant, true);
    END IF;
  END IF;
END $$;

-- Whether a job may not be claimed ahead (S68), whatever the rules say: as `model.scheduling.look_ahead` decides. Jobs of tasks
-- with a gate and those that a rate counts may not either; `claim_stepwise` knows these. The planner inlines it.
CREATE OR REPLACE FUNCTION {schema}.is_careful(
  p_is_suspect boolean, p_at_most_once boolean, p_failures int, p_max_attempts int, p_dedup_key text, p_dedup_until text
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT p_is_suspect OR p_at_most_once OR p_failures + 1 >= p_max_attempts
    OR (p_dedup_key IS NOT NULL AND p_dedup_until = 'started')
$$;

-- Park a tenant, for this reason and until this instant or NULL.
CREATE OR REPLACE FUNCTION {schema}.park_tenant(q {schema}.queue, p_tid tid, p_tenant text, p_reason text, p_until bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_reason = 'running_limit' THEN
    PERFORM {schema}.flag_capped_claims(q.name, p_tenant);
  END IF;
  UPDATE {schema}.tenant_queue SET ver = q.ver, state = {parked}, parked = p_reason, subject = 'tenant ' || p_tenant,
                                   parked_until = p_until, parked_vt = vt, parked_since = ready_since
  WHERE ctid = p_tid;
END $$;

-- Park a strand; one that finds its gate full, or its breaker not closed, waits in its line, in the order of its tenant's virtual time.
CREATE OR REPLACE FUNCTION {schema}.park_strand(
  q {schema}.queue, p_tid tid, p_reason text, p_subject text, p_until bigint, p_gate text, p_vt bigint, p_ready_since bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.strand SET ver = q.ver, state = {parked}, parked = p_reason, subject = p_subject, parked_until = p_until,
                             gate = CASE p_reason WHEN 'gate' THEN p_gate WHEN 'breaker' THEN p_subject END, parked_vt = p_vt, parked_since = p_ready_since
  WHERE ctid = p_tid;
END $$;

-- Let the end of every running claim of a tenant write a delta: also of those from before it had a limit. Skips what is being
-- settled; `promote` looks for tenants that have free slots.
CREATE OR REPLACE FUNCTION {schema}.flag_capped_claims(p_queue text, p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_tids tid[];
BEGIN
  v_tids := array(SELECT ctid FROM {schema}.job WHERE (queue, tenant) BETWEEN (p_queue, p_tenant) AND (p_queue, p_tenant)
                    AND state = {running}
                    AND NOT is_capped FOR UPDATE SKIP LOCKED);
  UPDATE {schema}.job SET is_capped = true WHERE ctid = any(v_tids);
END $$;

-- Whether nothing of a tenant runs in a queue.
CREATE OR REPLACE FUNCTION {schema}.has_none_running(p_queue text, p_tenant text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN NOT EXISTS (SELECT 1 FROM {schema}.job WHERE (queue, tenant) BETWEEN (p_queue, p_tenant) AND (p_queue, p_tenant)
                                                  AND state = {running});
END $$;
