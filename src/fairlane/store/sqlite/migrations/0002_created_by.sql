-- Purpose: keep who asked for a job. Jobs of before have nobody. No index: find and tally compare it while they read.

ALTER TABLE body ADD COLUMN created_by TEXT;
