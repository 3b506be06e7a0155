-- Circuit breakers: one row for each, or for each tenant of one. `slots` is NULL while it is closed.
CREATE TABLE breaker (
  name TEXT NOT NULL,
  tenant TEXT NOT NULL,            -- empty: all tenants together
  slots INTEGER,
  state BLOB NOT NULL,             -- packed: model.guards.breaker.BreakerState
  PRIMARY KEY (name, tenant)
) STRICT, WITHOUT ROWID;

CREATE INDEX breaker_not_closed ON breaker (name) WHERE slots IS NOT NULL;
