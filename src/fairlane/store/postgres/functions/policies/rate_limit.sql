-- Rate limits (S44), as `model.policy.limits.Rate` computes them. `next_allowed_at` is the instant up to which starts are
-- used up; `rate_id` names the rate it belongs to, so that a changed rate starts afresh. A tenant's is in its row of
-- `tenant_queue`, those of queues, tasks and gates in `rate_state`.
-- Parameters: `p_rate` is the rule that has the rate.
-- Index: rate_state_name. Locks: the queue lock for the rate of a queue or tenant, `lock_gates` for tasks and gates.

-- When a rate allows its next start; NULL if now. `p_ends`: when an override ends and another rate may be in force.
CREATE OR REPLACE FUNCTION {schema}.rate_block(p_now bigint, p_rate {schema}.effective_rule, p_next_allowed_at bigint,
  p_rate_id text, p_ends bigint)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_free_at bigint := CASE WHEN p_rate_id = p_rate.rate_id THEN p_next_allowed_at ELSE 0 END
                      - (p_rate.rate_burst - 1) * p_rate.rate_every;
BEGIN
  RETURN CASE WHEN v_free_at > p_now THEN least(v_free_at, p_ends) END;
END $$;

-- The same for a rate whose state is in `rate_state`.
CREATE OR REPLACE FUNCTION {schema}.stored_rate_block(p_now bigint, p_rate {schema}.effective_rule) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE stored {schema}.rate_state;
BEGIN
  SELECT * INTO stored FROM {schema}.rate_state WHERE kind = p_rate.kind
    AND name = p_rate.name ORDER BY kind, name, ver DESC LIMIT 1;
  RETURN {schema}.rate_block(p_now, p_rate, coalesce(stored.next_allowed_at, 0), coalesce(stored.rate_id, ''),
                             nullif(p_rate.until, {forever}));
END $$;

-- `next_allowed_at` after a start now.
CREATE OR REPLACE FUNCTION {schema}.next_allowed_after(p_now bigint, p_rate {schema}.effective_rule, p_next_allowed_at bigint,
  p_rate_id text)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN greatest(p_now, CASE WHEN p_rate_id = p_rate.rate_id THEN p_next_allowed_at END) + p_rate.rate_every;
END $$;

-- Count a start against a rate whose state is in `rate_state`.
CREATE OR REPLACE FUNCTION {schema}.record_start(p_now bigint, p_rate {schema}.effective_rule) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE stored record;
BEGIN
  SELECT ctid AS tid, ver, next_allowed_at, rate_id INTO stored FROM {schema}.rate_state WHERE kind = p_rate.kind
    AND name = p_rate.name
  ORDER BY kind, name, ver DESC LIMIT 1;
  IF found THEN
    UPDATE {schema}.rate_state SET ver = stored.ver + 1, next_allowed_at = {schema}.next_allowed_after(p_now, p_rate,
      stored.next_allowed_at, stored.rate_id),
                        rate_id = p_rate.rate_id
    WHERE ctid = stored.tid;
  ELSE
    INSERT INTO {schema}.rate_state (kind, name, next_allowed_at, rate_id)
    VALUES (p_rate.kind, p_rate.name, p_now + p_rate.rate_every, p_rate.rate_id);
  END IF;
END $$;
