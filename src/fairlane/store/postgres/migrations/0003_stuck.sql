-- When a claim of a job is stuck, and what becomes of the job then: stored with it in every home. Jobs of before: at twice
-- their timeout, dead. Columns with a constant default, so no table is rewritten; waits for open transactions that use the
-- tables. No index: the pass reads the running jobs, which are few. Partitions of `history` follow their parent.
ALTER TABLE {schema}.job ADD COLUMN stuck_after bigint;
ALTER TABLE {schema}.job ADD COLUMN on_stuck text COLLATE "C" NOT NULL DEFAULT 'dead';
ALTER TABLE {schema}.history ADD COLUMN stuck_after bigint;
ALTER TABLE {schema}.history ADD COLUMN on_stuck text COLLATE "C" NOT NULL DEFAULT 'dead';
ALTER TABLE {schema}.dead ADD COLUMN stuck_after bigint;
ALTER TABLE {schema}.dead ADD COLUMN on_stuck text COLLATE "C" NOT NULL DEFAULT 'dead';
