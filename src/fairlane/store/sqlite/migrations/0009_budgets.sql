-- Purpose: what is spent of each budget, and what claims have reserved (S59, S113-S115).

-- When the periods of a budget begin: the present one, and those to come.
CREATE TABLE budget_period (
  budget    TEXT NOT NULL,
  starts_at INTEGER NOT NULL,
  PRIMARY KEY (budget, starts_at)
) STRICT, WITHOUT ROWID;

-- What is counted in the present period, for one tenant, or for all with an empty name. Millionths.
CREATE TABLE budget_account (
  budget        TEXT NOT NULL,
  tenant        TEXT NOT NULL,
  starts_at     INTEGER NOT NULL,
  ends_at       INTEGER NOT NULL,
  spent         INTEGER NOT NULL,
  reserved      INTEGER NOT NULL,
  told          INTEGER NOT NULL,
  is_waited_for INTEGER NOT NULL,
  PRIMARY KEY (budget, tenant)
) STRICT, WITHOUT ROWID;

-- A claim under a budget, until its worker has settled it. `ended_at`: somebody else has ended it.
CREATE TABLE budget_claim (
  job        BLOB NOT NULL,
  fence      INTEGER NOT NULL,
  budget     TEXT NOT NULL,
  account    TEXT NOT NULL,
  task       TEXT NOT NULL,
  tenant     TEXT NOT NULL,
  created_by TEXT NOT NULL,
  estimate   INTEGER NOT NULL,
  spent      INTEGER NOT NULL,
  period     INTEGER NOT NULL,
  ended_at   INTEGER,
  PRIMARY KEY (job, fence)
) STRICT, WITHOUT ROWID;
CREATE INDEX budget_claim_ended ON budget_claim (ended_at) WHERE ended_at IS NOT NULL;

-- Who has spent what in a period.
CREATE TABLE budget_spend (
  budget     TEXT NOT NULL,
  starts_at  INTEGER NOT NULL,
  task       TEXT NOT NULL,
  tenant     TEXT NOT NULL,
  created_by TEXT NOT NULL,
  spent      INTEGER NOT NULL,
  PRIMARY KEY (budget, starts_at, task, tenant, created_by)
) STRICT, WITHOUT ROWID;

-- The strands that wait for room in a budget.
CREATE INDEX strand_budget ON strand (parked) WHERE parked >= 'budget ' AND parked < 'budget!';
