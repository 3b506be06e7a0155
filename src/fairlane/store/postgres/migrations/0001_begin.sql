-- The first schema: one wide row per hot job, history by day, and narrow rows that say whose turn it is.
--
-- `{s}` stands for the installation's schema. Instants are microseconds. Text is compared byte by byte, as the other
-- stores do. Rows of `turn`, `strand` and `queue` belong to whoever holds the queue's mutex; each rewrite stamps a
-- higher `ver`, so that a look-up meets the living version before the dead ones that an old snapshot keeps. They have
-- no unique index: it would walk all dead versions at every write. The mutex is what makes them unique.

CREATE TABLE {s}.meta (
  name  text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE {s}.job (
  id              uuid   NOT NULL,
  tenant          text   COLLATE "C" NOT NULL,
  queue           text   COLLATE "C" NOT NULL,
  task            text   COLLATE "C" NOT NULL,
  state           text   COLLATE "C" NOT NULL,
  because         text,
  payload         bytea  NOT NULL,
  checksum        bigint NOT NULL,
  version         int    NOT NULL,
  priority        int    NOT NULL,
  enqueued_at     bigint NOT NULL,
  run_at          bigint NOT NULL,
  sort_key        bigint NOT NULL,
  expires_at      bigint,
  idempotency_key text   COLLATE "C",          -- NULL: the id itself
  dedup_key       text   COLLATE "C",
  dedup_until     text   NOT NULL,
  correlation_id  text   COLLATE "C",          -- NULL: the id itself
  parent_id       uuid,
  max_attempts    int    NOT NULL,
  timeout         bigint,
  at_most_once    boolean NOT NULL,
  tags            text[],
  metadata        bytea  NOT NULL,
  created_by      text,
  attempt         int    NOT NULL DEFAULT 0,
  failures        int    NOT NULL DEFAULT 0,
  crashes         int    NOT NULL DEFAULT 0,
  crashes_alone   int    NOT NULL DEFAULT 0,
  snoozes         int    NOT NULL DEFAULT 0,
  is_suspect      boolean NOT NULL DEFAULT false,
  fence           bigint NOT NULL DEFAULT 0,
  attempts        text[],                      -- one JSON object for each ended attempt
  worker          text   COLLATE "C",
  started_at      bigint,
  lease_until     bigint,
  is_cancel_asked boolean NOT NULL DEFAULT false,
  progress        bytea,
  gate            text   COLLATE "C",          -- the gate at which the live claim holds a place
  is_alone        boolean NOT NULL DEFAULT false,
  is_capped       boolean NOT NULL DEFAULT false, -- its tenant has a running limit: ending the claim says so
  charged         bigint                       -- what the claim was charged, where the queue counts seconds
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX job_id ON {s}.job (id);
CREATE INDEX job_time ON {s}.job (enqueued_at, id);
CREATE INDEX job_tenant ON {s}.job (tenant, enqueued_at, id);
CREATE INDEX job_correlation ON {s}.job (correlation_id, enqueued_at, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX job_ready ON {s}.job (queue, tenant, task, sort_key, id) WHERE state = {ready};
CREATE INDEX job_due ON {s}.job (queue, run_at, id) WHERE state = {delayed};
CREATE INDEX job_lease ON {s}.job (lease_until, id) WHERE state = {running};
CREATE INDEX job_running ON {s}.job (queue, tenant) WHERE state = {running};
CREATE INDEX job_gate ON {s}.job (gate) WHERE gate IS NOT NULL;
CREATE INDEX job_asked ON {s}.job (worker, id) WHERE is_cancel_asked;
CREATE INDEX job_expiry ON {s}.job (expires_at, id) WHERE expires_at IS NOT NULL;

CREATE TABLE {s}.history (
  id              uuid   NOT NULL,
  tenant          text   COLLATE "C" NOT NULL,
  queue           text   COLLATE "C" NOT NULL,
  task            text   COLLATE "C" NOT NULL,
  state           text   COLLATE "C" NOT NULL,
  because         text,
  payload         bytea  NOT NULL,
  checksum        bigint NOT NULL,
  version         int    NOT NULL,
  priority        int    NOT NULL,
  enqueued_at     bigint NOT NULL,
  run_at          bigint NOT NULL,
  sort_key        bigint NOT NULL,
  expires_at      bigint,
  idempotency_key text   COLLATE "C",
  dedup_key       text   COLLATE "C",
  dedup_until     text   NOT NULL,
  correlation_id  text   COLLATE "C",
  parent_id       uuid,
  max_attempts    int    NOT NULL,
  timeout         bigint,
  at_most_once    boolean NOT NULL,
  tags            text[],
  metadata        bytea  NOT NULL,
  created_by      text,
  attempt         int    NOT NULL,
  failures        int    NOT NULL,
  crashes         int    NOT NULL,
  crashes_alone   int    NOT NULL,
  snoozes         int    NOT NULL,
  is_suspect      boolean NOT NULL,
  fence           bigint NOT NULL,
  attempts        text[],
  settled_at      bigint NOT NULL,
  result          bytea
) PARTITION BY RANGE (settled_at);
CREATE INDEX history_id ON {s}.history (id);
CREATE INDEX history_time ON {s}.history (enqueued_at, id);
CREATE INDEX history_tenant ON {s}.history (tenant, enqueued_at, id);
CREATE INDEX history_correlation ON {s}.history (correlation_id, enqueued_at, id) WHERE correlation_id IS NOT NULL;
-- Rows come in the order of settling, so that a few words for every eight pages tell where old ones are.
CREATE INDEX history_settled ON {s}.history USING brin (settled_at) WITH (pages_per_range = 8, autosummarize = on);
-- What no day was made for in time goes here; upkeep moves it when it makes the day.
CREATE TABLE {s}.history_rest PARTITION OF {s}.history DEFAULT;

CREATE TABLE {s}.dead (
  LIKE {s}.history,
  error_class text,
  review      text COLLATE "C" NOT NULL DEFAULT 'pending'
);
CREATE UNIQUE INDEX dead_id ON {s}.dead (id);
CREATE INDEX dead_time ON {s}.dead (enqueued_at, id);
CREATE INDEX dead_tenant ON {s}.dead (tenant, enqueued_at, id);
CREATE INDEX dead_correlation ON {s}.dead (correlation_id, enqueued_at, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX dead_settled ON {s}.dead (settled_at, id);
CREATE INDEX dead_tenant_settled ON {s}.dead (tenant, settled_at, id);

-- Whose turn it is: one tenant of one queue. `state`: 0 nothing ready, 1 in the ready index, 2 parked, 3 all of its
-- strands with ready jobs are parked.
CREATE TABLE {s}.turn (
  queue        text   COLLATE "C" NOT NULL,
  tenant       text   COLLATE "C" NOT NULL,
  ver          bigint NOT NULL,
  vt           bigint NOT NULL DEFAULT 0,
  ready_since  bigint NOT NULL DEFAULT 0,
  state        smallint NOT NULL DEFAULT 0,
  delayed      int    NOT NULL DEFAULT 0,
  ready        int    NOT NULL DEFAULT 0,
  head_key     bigint NOT NULL DEFAULT -9223372036854775808, -- no open strand has a lower one: where the look begins
  arrival      bigint NOT NULL DEFAULT 0,      -- of the tenant's rate in this queue
  pace         text   NOT NULL DEFAULT '',
  parked       text   COLLATE "C",             -- the reason: running_limit, rate, paused
  subject      text   COLLATE "C",             -- of what, as in `tenant acme`
  parked_until bigint,
  parked_vt    bigint NOT NULL DEFAULT 0,
  parked_since bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX turn_name ON {s}.turn (tenant, queue, ver DESC);
CREATE INDEX turn_idle ON {s}.turn (queue, vt) WHERE state = 0;
CREATE INDEX turn_order ON {s}.turn (queue, vt, ready_since) WHERE state = 1;
CREATE INDEX turn_parked ON {s}.turn (queue, parked_until, parked_vt, parked_since) WHERE state = 2;

-- One task of one turn, while it has jobs. `state`: 0 nothing ready, 1 open, 2 parked. The head is its lowest ready job,
-- or lower: where the look into `job_ready` begins.
CREATE TABLE {s}.strand (
  queue        text   COLLATE "C" NOT NULL,
  tenant       text   COLLATE "C" NOT NULL,
  task         text   COLLATE "C" NOT NULL,
  ver          bigint NOT NULL,
  state        smallint NOT NULL DEFAULT 0,
  head_key     bigint,
  head_id      uuid,
  parked       text   COLLATE "C",             -- the reason: gate, rate, paused
  subject      text   COLLATE "C",
  gate         text   COLLATE "C",             -- in whose line it waits
  parked_until bigint,
  parked_vt    bigint NOT NULL DEFAULT 0,
  parked_since bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX strand_name ON {s}.strand (queue, tenant, task, ver DESC);
CREATE INDEX strand_open ON {s}.strand (queue, tenant, head_key, head_id) WHERE state = 1;
CREATE INDEX strand_parked ON {s}.strand (queue, parked_until, parked_vt, parked_since, task) WHERE state = 2;
CREATE INDEX strand_line ON {s}.strand (queue, gate, parked_vt, parked_since, task) WHERE gate IS NOT NULL;
CREATE INDEX strand_gate ON {s}.strand (gate, queue) WHERE gate IS NOT NULL;
CREATE INDEX strand_task ON {s}.strand (task, queue) WHERE state = 2;
CREATE INDEX strand_held ON {s}.strand (queue, tenant) WHERE state = 2;

CREATE TABLE {s}.queue (
  name     text   COLLATE "C" NOT NULL,
  ver      bigint NOT NULL,
  floor    bigint NOT NULL DEFAULT 0,          -- of virtual time
  low      bigint NOT NULL DEFAULT 0,          -- no ready turn has a lower clock: where the look for one begins
  sequence bigint NOT NULL DEFAULT 0,          -- of becoming ready
  waiting  bigint NOT NULL DEFAULT 0,
  seen     pg_snapshot,                        -- what the last whole fold could see; only a hint where to look
  swept_at bigint NOT NULL DEFAULT 0           -- when promote last looked at everything, hint or not
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_name ON {s}.queue (name, ver DESC);

-- What happened to a strand outside the mutex, appended in the step in which it happened and folded into `turn`,
-- `strand` and `queue` by the next who holds the mutex. Nobody ever waits for a row here.
CREATE TABLE {s}.delta (
  xid      xid8   NOT NULL DEFAULT pg_current_xact_id(),
  ord      int    NOT NULL,                    -- the order within its transaction
  queue    text   COLLATE "C" NOT NULL,
  tenant   text   COLLATE "C" NOT NULL,
  task     text   COLLATE "C" NOT NULL,
  delayed  int    NOT NULL DEFAULT 0,
  ready    int    NOT NULL DEFAULT 0,
  head_key bigint,                             -- the lowest of those that became ready
  head_id  uuid,
  vt       bigint NOT NULL DEFAULT 0,          -- a correction of what was charged
  took     bigint,                             -- how long one run took, for the estimate of (queue, task)
  is_freed boolean NOT NULL DEFAULT false      -- a capped claim has ended
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX delta_order ON {s}.delta (queue, xid, ord);

-- How many finished jobs are kept: a sum, and what is not yet added to it.
CREATE TABLE {s}.tally (
  tenant text   COLLATE "C" NOT NULL,
  queue  text   COLLATE "C" NOT NULL,
  state  text   COLLATE "C" NOT NULL,
  jobs   bigint NOT NULL,
  PRIMARY KEY (tenant, queue, state)
);
CREATE TABLE {s}.tally_delta (
  tenant text   COLLATE "C" NOT NULL,
  queue  text   COLLATE "C" NOT NULL,
  state  text   COLLATE "C" NOT NULL,
  jobs   bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {s}.idempotency (
  tenant      text  COLLATE "C" NOT NULL,
  key         text  COLLATE "C" NOT NULL,
  id          uuid  NOT NULL,
  fingerprint bytea NOT NULL,
  state       text  COLLATE "C",
  settled_at  bigint,
  PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_settled ON {s}.idempotency (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE {s}.dedup (
  tenant text COLLATE "C" NOT NULL,
  task   text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,
  id     uuid NOT NULL,
  PRIMARY KEY (tenant, task, key)
);

-- What is stored about a subject, as the model writes it; `term` and `hold` are worked out from it for the claim.
CREATE TABLE {s}.policy (
  kind     text COLLATE "C" NOT NULL,
  name     text COLLATE "C" NOT NULL,
  declared bytea,
  override bytea,
  paused   bytea,
  closed   bytea,
  PRIMARY KEY (kind, name)
);

-- What is in force for a subject from `since` on and before `until`, as numbers. Of a tenant: with queue '' its stride;
-- with a queue's name, or '*' for every other, its limits there. Of a queue: with queue '' its own rate and cost; with
-- queue '*' the limits of each tenant in it. Of a task and a gate: with queue ''.
CREATE TABLE {s}.term (
  kind        text   COLLATE "C" NOT NULL,
  name        text   COLLATE "C" NOT NULL,
  queue       text   COLLATE "C" NOT NULL DEFAULT '',
  since       bigint NOT NULL,
  until       bigint NOT NULL,
  stride      bigint,
  waiting     int,
  on_full     text,
  running     int,
  rate_every  bigint,
  rate_burst  int,
  pace        text,
  max_waiting int,
  cost        text,
  gate        text   COLLATE "C",
  most        int,                              -- a gate's limit
  PRIMARY KEY (kind, name, queue, since)
);
-- Whether anything at all limits what may wait: an enqueue asks first.
CREATE INDEX term_waiting ON {s}.term (kind, name) WHERE waiting IS NOT NULL OR max_waiting IS NOT NULL;

CREATE INDEX term_limits ON {s}.term (queue, name) WHERE kind = 'tenant' AND queue <> '';

CREATE TABLE {s}.hold (
  verb   text   COLLATE "C" NOT NULL,           -- paused, closed
  kind   text   COLLATE "C" NOT NULL,
  name   text   COLLATE "C" NOT NULL,
  until  bigint NOT NULL,
  reason text   NOT NULL,
  PRIMARY KEY (kind, name, verb)
);

-- Each change of a policy that may have held somebody, in the order in which they were committed, and the last one
-- that each queue has heeded: what the subject held there has its time to wake set to that of the change.
CREATE TABLE {s}.mark (
  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at   bigint NOT NULL,
  kind text   COLLATE "C" NOT NULL,
  name text   COLLATE "C" NOT NULL
);
CREATE INDEX mark_subject ON {s}.mark (kind, name, id);
CREATE TABLE {s}.marked (
  queue text   COLLATE "C" PRIMARY KEY,
  mark  bigint NOT NULL
) WITH (fillfactor = 50);

-- When the rate of a queue, task or gate allows its next start.
CREATE TABLE {s}.pace (
  kind    text   COLLATE "C" NOT NULL,
  name    text   COLLATE "C" NOT NULL,
  arrival bigint NOT NULL,
  pace    text   NOT NULL,
  PRIMARY KEY (kind, name)
) WITH (fillfactor = 50);

CREATE TABLE {s}.estimate (
  queue    text   COLLATE "C" NOT NULL,
  task     text   COLLATE "C" NOT NULL,
  estimate bigint NOT NULL,
  PRIMARY KEY (queue, task)
) WITH (fillfactor = 50);

CREATE TABLE {s}.worker (
  id         text   COLLATE "C" PRIMARY KEY,
  card       bytea  NOT NULL,
  tasks      text[] NOT NULL,                  -- the names of its tasks, in their order, and their cards
  cards      bytea[] NOT NULL,
  state      text   NOT NULL,
  started_at bigint NOT NULL,
  beat_at    bigint NOT NULL,
  running    int    NOT NULL DEFAULT 0,
  settled    bigint NOT NULL DEFAULT 0,
  failed     bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE {s}.published (
  name    text   COLLATE "C" PRIMARY KEY,
  card    bytea  NOT NULL,
  seen_at bigint NOT NULL
);

CREATE TABLE {s}.lead (
  name   text   COLLATE "C" PRIMARY KEY,
  worker text   COLLATE "C" NOT NULL,
  until  bigint NOT NULL
) WITH (fillfactor = 50);
