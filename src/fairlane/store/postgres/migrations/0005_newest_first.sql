-- What is rewritten at every start is met by its newest version first, however many of the others an old snapshot keeps.
ALTER TABLE {s}.pace DROP CONSTRAINT pace_pkey, ADD COLUMN ver bigint NOT NULL DEFAULT 0;
CREATE INDEX pace_name ON {s}.pace (kind, name, ver DESC);

-- Places at a gate are counted from the first claim on that still holds one. One row for each gate, of who holds the mutex
-- of all gates.
DROP INDEX {s}.job_gate;
CREATE INDEX job_gate ON {s}.job (gate, started_at) WHERE gate IS NOT NULL;
CREATE TABLE {s}.gate (
  name  text   COLLATE "C" NOT NULL,
  ver   bigint NOT NULL,
  since bigint NOT NULL                        -- no claim that holds a place was started before
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX gate_name ON {s}.gate (name, ver DESC);
