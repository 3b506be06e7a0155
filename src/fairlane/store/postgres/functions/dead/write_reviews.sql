-- Dead letters (S75): find the rows of letters, and write what was decided about them.
-- Parameters: one value for each letter. Index: dead_id; rows are changed by their ctid. Locks: no new ones; the caller
-- has locked the rows.

-- Where the rows of these letters are, in this order.
CREATE OR REPLACE FUNCTION {schema}.letter_locations(p_id uuid[]) RETURNS tid[] LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  RETURN (SELECT array_agg(d.tid ORDER BY u.n) FROM unnest(p_id) WITH ORDINALITY u (id, n)
          CROSS JOIN LATERAL (SELECT ctid AS tid FROM {schema}.dead WHERE id BETWEEN u.id AND u.id ORDER BY id LIMIT 1) d);
END $$;

CREATE OR REPLACE FUNCTION {schema}.write_reviews(p_tid tid[], p_review text[], p_record bytea[], p_is_acknowledged boolean[],
  p_has_notes boolean[], p_decided_at bigint[], p_new_run uuid[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  UPDATE {schema}.dead d
  SET review = u.review, review_record = u.record, is_acknowledged = u.is_acknowledged, has_notes = u.has_notes,
      decided_at = u.decided_at, new_run = u.new_run
  FROM unnest(p_tid, p_review, p_record, p_is_acknowledged, p_has_notes, p_decided_at, p_new_run)
       u (tid, review, record, is_acknowledged, has_notes, decided_at, new_run)
  WHERE d.ctid = u.tid;
END $$;
