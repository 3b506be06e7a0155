-- Number what was appended to a journal, and trim it (S76): for the duty of the journal.
-- Index: primary keys of `pending_entry`, `entry` and `journal_end`. Locks: the row of the journal's end, for which
-- only another duty waits. Who appends locks nothing, and nobody else removes what is pending: what `number_entries`
-- has found it can remove.

-- The end of a journal, locked until the end of the transaction.
CREATE OR REPLACE FUNCTION {schema}.lock_journal(p_journal text) RETURNS {schema}.journal_end LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_end {schema}.journal_end;
BEGIN
  SELECT * INTO v_end FROM {schema}.journal_end WHERE journal = p_journal FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO {schema}.journal_end (journal) VALUES (p_journal) ON CONFLICT DO NOTHING;
    SELECT * INTO v_end FROM {schema}.journal_end WHERE journal = p_journal FOR UPDATE;
  END IF;
  RETURN v_end;
END $$;

-- Replace pending entries, by their places, with numbered ones. The caller holds the lock of the journal's end and has
-- checked its revision and the numbers. Return false, and change nothing, if an entry is pending no longer.
CREATE OR REPLACE FUNCTION {schema}.number_entries(p_journal text, p_taken bigint[], p_memory bytea, p_number bigint[],
  p_at bigint[], p_kind text[], p_tenant text[], p_subject text[], p_count bigint[], p_body bytea[], p_seal bytea[])
RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_found bigint;
BEGIN
  SELECT count(*) INTO v_found FROM {schema}.pending_entry WHERE journal = p_journal AND place = ANY (p_taken);
  IF v_found <> cardinality(p_taken) THEN
    RETURN false;
  END IF;
  DELETE FROM {schema}.pending_entry WHERE journal = p_journal AND place = ANY (p_taken);
  INSERT INTO {schema}.entry (journal, number, at, kind, tenant, subject, count, body, seal)
  SELECT p_journal, u.* FROM unnest(p_number, p_at, p_kind, p_tenant, p_subject, p_count, p_body, p_seal) u;
  UPDATE {schema}.journal_end
  SET revision = revision + 1, memory = p_memory, last = last + cardinality(p_number),
      first = CASE first WHEN 0 THEN coalesce(p_number[1], 0) ELSE first END
  WHERE journal = p_journal;
  RETURN true;
END $$;

-- Delete the oldest numbered entries up to a number, at most p_limit. The caller holds the lock of the journal's end
-- and has checked its revision and the number.
CREATE OR REPLACE FUNCTION {schema}.trim_entries(p_journal text, p_up_to bigint, p_limit int, p_memory bytea) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_end {schema}.journal_end := {schema}.lock_journal(p_journal);
  v_last bigint := least(p_up_to, v_end.first + p_limit - 1);
BEGIN
  IF v_end.first = 0 OR v_last < v_end.first THEN
    v_last := v_end.first - 1;  -- nothing to delete
  END IF;
  DELETE FROM {schema}.entry WHERE journal = p_journal AND number BETWEEN v_end.first AND v_last;
  UPDATE {schema}.journal_end
  SET revision = revision + 1, memory = p_memory, first = CASE WHEN v_last = last THEN 0 ELSE v_last + 1 END
  WHERE journal = p_journal;
END $$;
