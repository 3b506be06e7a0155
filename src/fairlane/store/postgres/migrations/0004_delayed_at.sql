-- Whoever lets jobs wait for a time says since when, so that no clock can hide them behind the look for due ones. Waits for
-- the transactions that have brought in jobs and are still open.
ALTER TABLE {s}.delta ADD COLUMN delayed_at bigint; -- none of the jobs that it says are delayed is due before
ALTER TABLE {s}.queue DROP COLUMN due_next, DROP COLUMN due_xid;
-- It answers one thing more, which CREATE OR REPLACE refuses.
DROP FUNCTION IF EXISTS {s}.is_any_lapsed(bigint, bigint, bigint);
