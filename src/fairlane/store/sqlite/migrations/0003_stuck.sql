-- Purpose: keep when a claim of a job is stuck, and what becomes of the job then. Jobs of before: at twice their timeout, dead.
-- No index: the pass reads the running jobs, which are few.

ALTER TABLE body ADD COLUMN stuck_after INTEGER;
ALTER TABLE body ADD COLUMN on_stuck TEXT NOT NULL DEFAULT 'dead';
