-- Circuit breakers (S58): one row for each, or for each tenant of one. What claims compare is in columns.
CREATE TABLE {schema}.breaker (
  name           text   COLLATE "C" NOT NULL,
  tenant         text   COLLATE "C" NOT NULL,   -- empty: all tenants together
  revision       bigint NOT NULL,
  open_until     bigint NOT NULL,               -- nobody passes before
  slots          int,                           -- how many pass at once then; NULL: closed
  half_opened_at bigint,
  permits        uuid[] NOT NULL,               -- the jobs that passed
  state          bytea  NOT NULL,               -- packed: model.guards.breaker.BreakerState
  PRIMARY KEY (name, tenant)
) WITH (fillfactor = 50);
CREATE INDEX breaker_not_closed ON {schema}.breaker (name, tenant) WHERE slots IS NOT NULL;

ALTER TABLE {schema}.effective_rule ADD COLUMN breaker text COLLATE "C";
