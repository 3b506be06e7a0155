-- What is spent of each budget, and what claims have reserved (S59, S113-S115). Workers of the version before know no budget,
-- and work on as they did.

ALTER TABLE {schema}.effective_rule
  ADD COLUMN budget     text COLLATE "C",      -- of a task
  ADD COLUMN ceiling    bigint,                -- the rest is of a budget; amounts are millionths
  ADD COLUMN currency   text,
  ADD COLUMN estimate   bigint,
  ADD COLUMN on_spent   text,
  ADD COLUMN per_tenant boolean,
  ADD COLUMN alert_at   int[];

-- When the periods of a budget begin: the present one, and those to come.
CREATE TABLE {schema}.budget_period (
  budget    text   COLLATE "C" NOT NULL,
  starts_at bigint NOT NULL,
  PRIMARY KEY (budget, starts_at)
);

-- What is counted in the present period, for one tenant, or for all with an empty name; without what `budget_report` says.
CREATE TABLE {schema}.budget_account (
  budget        text    COLLATE "C" NOT NULL,
  tenant        text    COLLATE "C" NOT NULL,
  starts_at     bigint  NOT NULL,
  ends_at       bigint  NOT NULL,
  spent         bigint  NOT NULL,
  reserved      bigint  NOT NULL,
  told          int     NOT NULL,
  is_waited_for boolean NOT NULL,
  PRIMARY KEY (budget, tenant)
) WITH (fillfactor = 50);

-- A claim under a budget, until its worker has settled it. `ended_at`: somebody else has ended it.
CREATE TABLE {schema}.budget_claim (
  job        uuid   NOT NULL,
  fence      bigint NOT NULL,
  budget     text   COLLATE "C" NOT NULL,
  account    text   COLLATE "C" NOT NULL,
  task       text   COLLATE "C" NOT NULL,
  tenant     text   COLLATE "C" NOT NULL,
  created_by text   COLLATE "C" NOT NULL,
  estimate   bigint NOT NULL,
  spent      bigint NOT NULL,
  period     bigint NOT NULL,
  ended_at   bigint,
  PRIMARY KEY (job, fence)
);
CREATE INDEX budget_claim_ended ON {schema}.budget_claim (ended_at) WHERE ended_at IS NOT NULL;

-- What became of claims, appended without a lock and counted under that of the gates by whoever comes next.
CREATE TABLE {schema}.budget_report (
  id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at    bigint NOT NULL,
  job   uuid   NOT NULL,
  fence bigint NOT NULL,
  kind  text   NOT NULL,                       -- renewed, settled, or ended by somebody else
  total bigint NOT NULL                        -- what was spent, from the start of the claim
);

-- Who has spent what in a period.
CREATE TABLE {schema}.budget_spend (
  budget     text   COLLATE "C" NOT NULL,
  starts_at  bigint NOT NULL,
  task       text   COLLATE "C" NOT NULL,
  tenant     text   COLLATE "C" NOT NULL,
  created_by text   COLLATE "C" NOT NULL,
  spent      bigint NOT NULL,
  PRIMARY KEY (budget, starts_at, task, tenant, created_by)
) WITH (fillfactor = 70);

-- The strands that wait for room in a budget.
CREATE INDEX strand_budget ON {schema}.strand (subject, queue) WHERE parked = 'budget';
