-- Schedules and their slots (S57). New tables: no other is touched.

-- A schedule, encoded.
CREATE TABLE {schema}.schedule (
  name     text   COLLATE "C" PRIMARY KEY,
  tenant   text   COLLATE "C",                 -- whose it is; NULL if its jobs are for many
  next_at  bigint,                             -- when it must be looked at again
  revision bigint NOT NULL,
  record   bytea  NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX schedule_next ON {schema}.schedule (next_at, name) WHERE next_at IS NOT NULL;
CREATE INDEX schedule_of_tenant ON {schema}.schedule (tenant, name) WHERE tenant IS NOT NULL;

-- A slot, encoded: that it is there is what keeps it from being taken twice.
CREATE TABLE {schema}.schedule_slot (
  schedule text   COLLATE "C" NOT NULL,
  at       bigint NOT NULL,
  tenant   text   COLLATE "C",
  ended_at bigint,                             -- NULL while it is pending
  record   bytea  NOT NULL,
  PRIMARY KEY (schedule, at)
);
CREATE INDEX schedule_slot_pending ON {schema}.schedule_slot ((tenant IS NULL), at, schedule) WHERE ended_at IS NULL;
CREATE INDEX schedule_slot_ended ON {schema}.schedule_slot (ended_at) WHERE ended_at IS NOT NULL;
