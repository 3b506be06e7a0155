-- Purpose: what pruning has removed and the archive does not have yet (S105).

-- A batch, open until somebody asks for it. A number is never used again.
CREATE TABLE archive_batch (
  number    INTEGER PRIMARY KEY AUTOINCREMENT,
  closed_at INTEGER
) STRICT;

CREATE TABLE archive_job (
  batch  INTEGER NOT NULL,
  id     BLOB NOT NULL,
  tenant TEXT NOT NULL,
  record BLOB NOT NULL,
  PRIMARY KEY (batch, id)
) STRICT;
CREATE INDEX archive_job_tenant ON archive_job (tenant);
