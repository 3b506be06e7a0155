-- Append entries to a journal (S60, S76), in the transaction of what they tell of. `move_to_dead` appends its own.
-- Parameters: one value for each entry. Index: none. Locks: none; nobody waits for anybody.
CREATE OR REPLACE FUNCTION {schema}.append_entries(p_now bigint, p_journal text, p_kind text[], p_tenant text[],
  p_subject text[], p_count bigint[], p_body bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := {schema}.now_or(p_now);
BEGIN
  INSERT INTO {schema}.pending_entry (journal, at, kind, tenant, subject, count, body)
  SELECT p_journal, v_now, u.* FROM unnest(p_kind, p_tenant, p_subject, p_count, p_body) u;
END $$;
