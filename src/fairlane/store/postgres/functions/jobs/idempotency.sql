-- Idempotency and de-duplication keys (S13, S14): taken by an insert that either wins or finds the holder, released
-- in the same transaction. Keys are always taken in their order, so that two batches never wait for each other in a
-- circle.
-- Index: the primary keys of `idempotency` and `dedup`, job_id, history_id, dead_id. Locks: a key that another open
-- transaction has taken is waited for, at most 5 s; nothing else is.

-- Take the keys that are free, and return those.
CREATE OR REPLACE FUNCTION {schema}.take_idempotency_keys(p_tenant text[], p_key text[], p_id uuid[], p_fingerprint bytea[],
  OUT tenants text[], OUT keys text[])
LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
BEGIN
  WITH taken AS (
    INSERT INTO {schema}.idempotency (tenant, key, id, fingerprint)
    SELECT u.tenant, u.key, u.id, u.fingerprint FROM unnest(p_tenant, p_key, p_id, p_fingerprint) WITH ORDINALITY
           u (tenant, key, id, fingerprint, n)
    WHERE u.key IS NOT NULL ORDER BY u.tenant, u.key, u.n
    ON CONFLICT DO NOTHING RETURNING tenant, key)
  SELECT array_agg(tenant), array_agg(key) INTO tenants, keys FROM taken;
END $$;

-- The same for de-duplication keys.
CREATE OR REPLACE FUNCTION {schema}.take_dedup_keys(p_tenant text[], p_task text[], p_key text[], p_id uuid[],
  OUT tenants text[], OUT tasks text[], OUT keys text[])
LANGUAGE plpgsql SET lock_timeout = '5s' AS $$
BEGIN
  WITH taken AS (
    INSERT INTO {schema}.dedup (tenant, task, key, id)
    SELECT u.tenant, u.task, u.key, u.id FROM unnest(p_tenant, p_task, p_key, p_id) WITH ORDINALITY
           u (tenant, task, key, id, n)
    WHERE u.key IS NOT NULL ORDER BY u.tenant, u.task, u.key, u.n
    ON CONFLICT DO NOTHING RETURNING tenant, task, key)
  SELECT array_agg(tenant), array_agg(task), array_agg(key) INTO tenants, tasks, keys FROM taken;
END $$;

-- Release keys whose job does not come in.
CREATE OR REPLACE FUNCTION {schema}.release_idempotency_keys(p_tenant text[], p_key text[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  DELETE FROM {schema}.idempotency k USING unnest(p_tenant, p_key) u (tenant, key)
  WHERE k.tenant = u.tenant AND k.key = u.key;
END $$;

CREATE OR REPLACE FUNCTION {schema}.release_dedup_keys(p_tenant text[], p_task text[], p_key text[]) RETURNS void
  LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  DELETE FROM {schema}.dedup k USING unnest(p_tenant, p_task, p_key) u (tenant, task, key)
  WHERE k.tenant = u.tenant AND k.task = u.task AND k.key = u.key;
END $$;

-- Lock the keys of dead jobs, in their order, until the end of the transaction; return those that are still dead.
-- Whoever wants to replace the same dead job waits here, and then finds it replaced.
CREATE OR REPLACE FUNCTION {schema}.lock_dead_keys(p_tenant text[], p_key text[]) RETURNS TABLE (tenant text, key text)
LANGUAGE plpgsql SET lock_timeout = '5s'
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_held record; u record;
BEGIN
  FOR u IN SELECT * FROM unnest(p_tenant, p_key) wanted (tenant, key) ORDER BY wanted.tenant, wanted.key LOOP
    SELECT k.tenant, k.key INTO v_held FROM {schema}.idempotency k
    WHERE k.tenant = u.tenant AND k.key = u.key AND k.state = {dead} FOR UPDATE;
    IF FOUND THEN
      tenant := v_held.tenant;
      key := v_held.key;
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;

-- Update the keys of jobs that have finished: the idempotency key stays for a while and tells the final state, the
-- de-duplication key is free at once.
CREATE OR REPLACE FUNCTION {schema}.end_keys(p_now bigint, p_had {schema}.finished_keys[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  UPDATE {schema}.idempotency k SET state = u.state, settled_at = p_now FROM unnest(p_had) u
  WHERE k.tenant = u.tenant AND k.key = u.idempotency_key AND k.id = u.id;
  DELETE FROM {schema}.dedup k USING unnest(p_had) u
  WHERE k.tenant = u.tenant AND k.task = u.task AND k.key = u.dedup_key AND k.id = u.id;
END $$;

-- Whether one of these ids belongs to a finished job. A job settles after its id was made, so earlier days of history
-- are skipped, except one: clocks of clients differ. An id that is not a UUIDv7 tells no time and is looked for in
-- all days. The ids of a batch lie close together: mostly one look shows that no finished job is among them.
CREATE OR REPLACE FUNCTION {schema}.is_any_finished(p_id uuid[]) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_since bigint := 0;
  v_first uuid := (SELECT u.id FROM unnest(p_id) u (id) ORDER BY u.id LIMIT 1);
  v_last uuid := (SELECT u.id FROM unnest(p_id) u (id) ORDER BY u.id DESC LIMIT 1);
BEGIN
  IF NOT EXISTS (SELECT FROM unnest(p_id) u (id) WHERE get_byte(uuid_send(u.id), 6) >> 4 <> 7) THEN
    v_since := ('x' || encode(substring(uuid_send(v_first) FOR 6), 'hex'))::bit(48)::bigint * 1000 - 86400000000;
  END IF;
  RETURN {schema}.is_any_finished_in(v_since, ARRAY[v_first], ARRAY[v_last])
    AND (v_first = v_last OR {schema}.is_any_finished_in(v_since, p_id, p_id));
END $$;

-- Whether a job that finished since an instant has its id in one of these ranges.
CREATE OR REPLACE FUNCTION {schema}.is_any_finished_in(p_since bigint, p_first uuid[], p_last uuid[]) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN EXISTS (SELECT FROM unnest(p_first, p_last) u (first, last) CROSS JOIN LATERAL (
      (SELECT h.id FROM {schema}.history h WHERE h.settled_at >= p_since
         AND h.id BETWEEN u.first AND u.last ORDER BY h.id LIMIT 1)
      UNION ALL
      (SELECT d.id FROM {schema}.dead d WHERE d.id BETWEEN u.first AND u.last ORDER BY d.id LIMIT 1)) found);
END $$;
