-- What is in order of enqueueing are the jobs that wait: a claim writes no entry for these, which were two of its five.
-- Running jobs are few, and found by their state. Holds the table of jobs while the indexes are made.

DROP INDEX {s}.job_time, {s}.job_tenant, {s}.job_correlation, {s}.job_expiry;
CREATE INDEX job_time ON {s}.job (enqueued_at, id) WHERE worker IS NULL;
CREATE INDEX job_tenant ON {s}.job (tenant, enqueued_at, id) WHERE worker IS NULL;
CREATE INDEX job_correlation ON {s}.job (correlation_id, enqueued_at, id)
  WHERE correlation_id IS NOT NULL AND worker IS NULL;
CREATE INDEX job_expiry ON {s}.job (expires_at, id) WHERE expires_at IS NOT NULL AND worker IS NULL;
