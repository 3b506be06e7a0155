-- What pruning has removed and the archive does not have yet (S105). New tables: no other is touched.

-- A batch, open until somebody asks for it. A number is never used again.
CREATE TABLE {schema}.archive_batch (
  number    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  closed_at bigint
);

CREATE TABLE {schema}.archive_job (
  batch  bigint NOT NULL,
  id     uuid   NOT NULL,
  tenant text   COLLATE "C" NOT NULL,
  record bytea  NOT NULL,
  PRIMARY KEY (batch, id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX archive_job_tenant ON {schema}.archive_job (tenant);
