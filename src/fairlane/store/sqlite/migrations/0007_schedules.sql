-- Purpose: schedules and their slots (S57).

-- A schedule, encoded. next_at: when it must be looked at again. tenant: whose it is, NULL if its jobs are for many.
CREATE TABLE schedule (
  name     TEXT PRIMARY KEY,
  tenant   TEXT,
  next_at  INTEGER,
  revision INTEGER NOT NULL,
  record   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_next ON schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedule_of_tenant ON schedule (tenant, name) WHERE tenant IS NOT NULL;

-- A slot, encoded: that it is there is what keeps it from being taken twice. ended_at: NULL while it is pending.
CREATE TABLE schedule_slot (
  schedule TEXT NOT NULL,
  at       INTEGER NOT NULL,
  tenant   TEXT,
  ended_at INTEGER,
  record   BLOB NOT NULL,
  PRIMARY KEY (schedule, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_slot_pending ON schedule_slot (tenant IS NULL, at, schedule) WHERE ended_at IS NULL;
CREATE INDEX schedule_slot_ended ON schedule_slot (ended_at) WHERE ended_at IS NOT NULL;
