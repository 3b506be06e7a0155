-- Reviews of dead letters, fingerprints of failures (S75), and the two journals (S60, S76). Columns that are nullable or have
-- a constant default, so no table is rewritten; deaths wait while the indexes are made. Letters of before are pending and have
-- no fingerprint. The last four columns follow from the record, which alone is read back: they are there to be looked for.
ALTER TABLE {schema}.dead
  ADD COLUMN fingerprint     text    COLLATE "C" NOT NULL DEFAULT '', -- of the last failure; '': it had none
  ADD COLUMN review_record   bytea,                        -- a `ReviewRecord`; NULL: nobody has done anything
  ADD COLUMN is_acknowledged boolean NOT NULL DEFAULT false,
  ADD COLUMN has_notes       boolean NOT NULL DEFAULT false,
  ADD COLUMN decided_at      bigint,                       -- the time of the decision that stands
  ADD COLUMN new_run         uuid;                         -- the job in its place, until it is known how that has ended
CREATE INDEX dead_fingerprint ON {schema}.dead (fingerprint, settled_at, id);
CREATE INDEX dead_review ON {schema}.dead (review, settled_at, id);
CREATE INDEX dead_new_run ON {schema}.dead (new_run) WHERE new_run IS NOT NULL;

-- What steps append to a journal, `audit` or `events`, as part of their own transaction. Nobody ever waits for a row here. A
-- row that is committed late has a low place and is found all the same: places identify rows, and nobody counts on their order.
CREATE TABLE {schema}.pending_entry (
  journal text   COLLATE "C" NOT NULL,
  place   bigint GENERATED ALWAYS AS IDENTITY,
  at      bigint NOT NULL,
  kind    text   COLLATE "C" NOT NULL,
  tenant  text   COLLATE "C",                  -- NULL: it concerns all tenants, and none sees it
  subject text   COLLATE "C" NOT NULL,
  count   bigint NOT NULL,
  body    bytea  NOT NULL,
  PRIMARY KEY (journal, place)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- The same with their numbers, which have no gaps. Written by a duty alone.
CREATE TABLE {schema}.entry (
  journal text   COLLATE "C" NOT NULL,
  number  bigint NOT NULL,
  at      bigint NOT NULL,
  kind    text   COLLATE "C" NOT NULL,
  tenant  text   COLLATE "C",
  subject text   COLLATE "C" NOT NULL,
  count   bigint NOT NULL,
  body    bytea  NOT NULL,
  seal    bytea  NOT NULL,
  PRIMARY KEY (journal, number)
);
CREATE INDEX entry_tenant ON {schema}.entry (journal, tenant, number) WHERE tenant IS NOT NULL;

-- Where a journal ends, and what its duty remembers. A journal that was never numbered has no row.
CREATE TABLE {schema}.journal_end (
  journal  text   COLLATE "C" PRIMARY KEY,
  revision bigint NOT NULL DEFAULT 0,
  first    bigint NOT NULL DEFAULT 0,
  last     bigint NOT NULL DEFAULT 0,
  memory   bytea  NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
