-- Circuit breakers (S58, S110): a breaker that is not closed is a gate before its tasks, of no slots while it is open, then of
-- 1, 2, 4 … Strands wait in its line under the name by which `explain` shows it. Who passed is noted in the row, and holds a slot
-- as long as that job runs.
-- Parameters: `p_passed` are jobs that the caller has let pass and not made running yet.
-- Index: the primary key, breaker_not_closed, job_id. Locks: claims share `lock_breakers`, so that none that began before a
-- breaker opened ends after it; who takes a permit in a claim holds `lock_gates`, too.

-- Take the lock of all breakers, shared by claims.
CREATE OR REPLACE FUNCTION {schema}.lock_breakers(p_is_claim boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_is_claim THEN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended($s${schema} breakers$s$, 0));
  ELSE
    PERFORM pg_advisory_xact_lock(hashtextextended($s${schema} breakers$s$, 0));
  END IF;
END $$;

-- Whether any breaker is not closed.
CREATE OR REPLACE FUNCTION {schema}.is_any_breaker_open() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM {schema}.breaker WHERE slots IS NOT NULL);
END $$;

-- The breakers that are not closed, for a claim that is told so (S124): a JSON array of name, tenant, slots and open_until, of one
-- more than a claim names at most; NULL if all are closed.
CREATE OR REPLACE FUNCTION {schema}.open_breakers(p_now bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM {schema}.breaker WHERE slots IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  RETURN json_build_object('now', p_now, 'found', (SELECT json_agg(json_build_array(name, tenant, slots, open_until)) FROM (
    SELECT name, tenant, slots, open_until FROM {schema}.breaker WHERE slots IS NOT NULL
    ORDER BY name, tenant LIMIT {max_open_breakers} + 1) one));
END $$;

-- Which of these jobs run.
CREATE OR REPLACE FUNCTION {schema}.running_jobs(p_ids uuid[]) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN array(SELECT asked.id FROM unnest(p_ids) AS asked (id), LATERAL (
    SELECT state FROM {schema}.job WHERE job.id BETWEEN asked.id AND asked.id ORDER BY id LIMIT 1) j
    WHERE j.state = {running});
END $$;

-- How many more may pass; NULL: everybody.
CREATE OR REPLACE FUNCTION {schema}.breaker_free_slots(p_now bigint, p_name text, p_tenant text, p_passed uuid[]) RETURNS int
LANGUAGE plpgsql STABLE AS $$
DECLARE
  b {schema}.breaker;
BEGIN
  SELECT * INTO b FROM {schema}.breaker WHERE name = p_name AND tenant = p_tenant AND slots IS NOT NULL;
  IF b.slots IS NULL THEN
    RETURN NULL;
  ELSIF p_now < b.open_until THEN
    RETURN 0;
  END IF;
  RETURN greatest(0, b.slots - (SELECT count(*) FROM unnest(b.permits) AS held (id)
    WHERE id = any(p_passed) OR id = any({schema}.running_jobs(b.permits)))::int);
END $$;

-- The same by the name of a line, `breaker mail` or `breaker mail acme`.
CREATE OR REPLACE FUNCTION {schema}.breaker_line_slots(p_now bigint, p_line text, p_passed uuid[]) RETURNS int
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN {schema}.breaker_free_slots(p_now, split_part(p_line, ' ', 2), split_part(p_line, ' ', 3), p_passed);
END $$;

-- What holds a strand back at its breaker: that of all tenants, or its own; `subject` is NULL if nothing does. `is_guarded`: one
-- of them is not closed.
CREATE OR REPLACE FUNCTION {schema}.breaker_block(
  p_now bigint, p_name text, p_tenant text, p_passed uuid[], OUT subject text, OUT until bigint, OUT is_guarded boolean
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  b {schema}.breaker;
BEGIN
  is_guarded := false;
  FOR b IN SELECT * FROM {schema}.breaker WHERE name = p_name AND tenant IN ('', p_tenant) AND slots IS NOT NULL ORDER BY tenant
  LOOP
    is_guarded := true;
    IF {schema}.breaker_free_slots(p_now, b.name, b.tenant, p_passed) = 0 THEN
      subject := rtrim('breaker ' || b.name || ' ' || b.tenant);
      until := CASE WHEN p_now < b.open_until THEN nullif(b.open_until, {last_instant}) END;
      RETURN;
    END IF;
  END LOOP;
END $$;

-- Note a job that passes.
CREATE OR REPLACE FUNCTION {schema}.take_permits(p_now bigint, p_name text, p_tenant text, p_job uuid, p_passed uuid[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.breaker SET revision = revision + 1, half_opened_at = coalesce(half_opened_at, p_now),
    permits = array(SELECT id FROM unnest(permits) WITH ORDINALITY AS held (id, n)
                    WHERE id <> p_job AND (id = any(p_passed) OR id = any({schema}.running_jobs(permits))) ORDER BY n) || p_job
  WHERE name = p_name AND tenant IN ('', p_tenant) AND slots IS NOT NULL;
END $$;

-- When the first open breaker at which strands of a queue wait lets somebody pass.
CREATE OR REPLACE FUNCTION {schema}.breaker_due(p_now bigint, p_queue text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT min(b.open_until) FROM {schema}.breaker b
          WHERE b.slots IS NOT NULL AND b.open_until > p_now AND b.open_until < {last_instant} AND EXISTS (
            SELECT 1 FROM {schema}.strand WHERE queue = p_queue AND gate = rtrim('breaker ' || b.name || ' ' || b.tenant)));
END $$;

-- Replace states, all or none: none if one has another revision than the one that was read (0: there was none). Then false. With
-- entries of the journals, one value for each.
CREATE OR REPLACE FUNCTION {schema}.write_breakers(p_now bigint, p_states jsonb, p_journal text[], p_kind text[], p_tenant text[],
  p_subject text[], p_body bytea[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := {schema}.now_or(p_now);
BEGIN
  PERFORM {schema}.lock_breakers(false);
  IF EXISTS (SELECT 1 FROM jsonb_populate_recordset(NULL::{schema}.breaker, p_states) new
             LEFT JOIN {schema}.breaker kept ON kept.name = new.name AND kept.tenant = new.tenant
             WHERE coalesce(kept.revision, 0) <> new.revision) THEN
    RETURN false;
  END IF;
  INSERT INTO {schema}.breaker SELECT name, tenant, revision + 1, open_until, slots, half_opened_at, permits, state
  FROM jsonb_populate_recordset(NULL::{schema}.breaker, p_states)
  ON CONFLICT (name, tenant) DO UPDATE SET
    revision = excluded.revision, open_until = excluded.open_until, slots = excluded.slots,
    half_opened_at = excluded.half_opened_at, permits = excluded.permits, state = excluded.state;
  INSERT INTO {schema}.pending_entry (journal, at, kind, tenant, subject, count, body)
  SELECT journal, v_now, kind, tenant, subject, 1, body
  FROM unnest(p_journal, p_kind, p_tenant, p_subject, p_body) AS entry (journal, kind, tenant, subject, body);
  RETURN true;
END $$;
