-- The first schema: one wide row per current job, history in partitions by day, and narrow rows that keep the fair order.
--
-- Instants are microseconds since 1970. Text has COLLATE "C": compared byte by byte, as the other stores do.
--
-- Rows of `tenant_queue`, `strand` and `queue` are written only under the queue's lock (functions/queues/locks.sql). Each
-- write raises `ver`, so that a look-up by (..., ver DESC) meets the live version before the dead versions that an old
-- snapshot keeps. They have no unique index, which would walk all dead versions at every write: the lock keeps them unique.

CREATE TABLE {schema}.meta (
  name  text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE {schema}.job (
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
  idempotency_key text   COLLATE "C",          -- NULL: same as id
  dedup_key       text   COLLATE "C",
  dedup_until     text   NOT NULL,
  correlation_id  text   COLLATE "C",          -- NULL: same as id
  parent_id       uuid,
  max_attempts    int    NOT NULL,
  timeout         bigint,
  at_most_once    boolean NOT NULL,
  tags            text[],
  metadata        bytea  NOT NULL,
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
  gate            text   COLLATE "C",          -- the gate where the live claim holds a slot
  is_alone        boolean NOT NULL DEFAULT false,
  is_capped       boolean NOT NULL DEFAULT false, -- its tenant has a running limit: its end writes a delta
  charged         bigint                       -- microseconds charged so far, where the queue counts seconds
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- Half-full pages: a claim writes a second version of the job, and with it a second entry beside the first. On full pages
-- the server would look for dead entries, or split the page, at every claim.
CREATE UNIQUE INDEX job_id ON {schema}.job (id) WITH (fillfactor = 50);
-- Only waiting jobs are indexed by time, tenant, correlation and expiry, so that a claim writes no entry here. Running jobs
-- are few, and found by their state.
CREATE INDEX job_time ON {schema}.job (enqueued_at, id) WHERE worker IS NULL;
CREATE INDEX job_tenant ON {schema}.job (tenant, enqueued_at, id) WHERE worker IS NULL;
CREATE INDEX job_correlation ON {schema}.job (correlation_id, enqueued_at, id)
  WHERE correlation_id IS NOT NULL AND worker IS NULL;
CREATE INDEX job_expiry ON {schema}.job (expires_at, id) WHERE expires_at IS NOT NULL AND worker IS NULL;
CREATE INDEX job_ready ON {schema}.job (queue, tenant, task, sort_key, id) WHERE state = {ready};
CREATE INDEX job_due ON {schema}.job (queue, run_at, id) WHERE state = {delayed};
CREATE INDEX job_lease ON {schema}.job (lease_until, id) WHERE state = {running};
CREATE INDEX job_running ON {schema}.job (queue, tenant) WHERE state = {running};
CREATE INDEX job_gate ON {schema}.job (gate, started_at) WHERE gate IS NOT NULL;
CREATE INDEX job_asked ON {schema}.job (worker, id) WHERE is_cancel_asked;

CREATE TABLE {schema}.history (
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
CREATE INDEX history_id ON {schema}.history (id);
CREATE INDEX history_time ON {schema}.history (enqueued_at, id);
CREATE INDEX history_tenant ON {schema}.history (tenant, enqueued_at, id);
CREATE INDEX history_correlation ON {schema}.history (correlation_id, enqueued_at, id) WHERE correlation_id IS NOT NULL;
-- Rows arrive in the order of settling, so a block-range index is enough to find old ones.
CREATE INDEX history_settled ON {schema}.history USING brin (settled_at) WITH (pages_per_range = 8, autosummarize = on);
-- Jobs settled on a day without a partition go here; upkeep moves them when it creates the partition.
CREATE TABLE {schema}.history_rest PARTITION OF {schema}.history DEFAULT;

CREATE TABLE {schema}.dead (
  LIKE {schema}.history,
  error_class text,
  review      text COLLATE "C" NOT NULL DEFAULT 'pending'
);
CREATE UNIQUE INDEX dead_id ON {schema}.dead (id);
CREATE INDEX dead_time ON {schema}.dead (enqueued_at, id);
CREATE INDEX dead_tenant ON {schema}.dead (tenant, enqueued_at, id);
CREATE INDEX dead_correlation ON {schema}.dead (correlation_id, enqueued_at, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX dead_settled ON {schema}.dead (settled_at, id);
CREATE INDEX dead_tenant_settled ON {schema}.dead (tenant, settled_at, id);

-- One tenant in one queue. `state`: {no_ready} no ready job, {open} in the fair order, {parked} as a whole, {all_parked} every
-- strand with ready jobs is. `vt` is the tenant's virtual time in this queue: the lowest is served next.
CREATE TABLE {schema}.tenant_queue (
  queue        text   COLLATE "C" NOT NULL,
  tenant       text   COLLATE "C" NOT NULL,
  ver          bigint NOT NULL,
  vt           bigint NOT NULL DEFAULT 0,
  ready_since  bigint NOT NULL DEFAULT 0,
  state        smallint NOT NULL DEFAULT 0,
  delayed      int    NOT NULL DEFAULT 0,
  ready        int    NOT NULL DEFAULT 0,
  head_key     bigint NOT NULL DEFAULT -9223372036854775808, -- no open strand has a lower head: strand scans start here
  next_allowed_at bigint NOT NULL DEFAULT 0,   -- of the tenant's rate limit in this queue
  rate_id      text   NOT NULL DEFAULT '',     -- the rate that `next_allowed_at` belongs to
  parked       text   COLLATE "C",             -- the reason: running_limit, rate, paused
  subject      text   COLLATE "C",             -- of what, as in `tenant acme`
  parked_until bigint,
  parked_vt    bigint NOT NULL DEFAULT 0,
  parked_since bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX tenant_queue_name ON {schema}.tenant_queue (tenant, queue, ver DESC);
CREATE INDEX tenant_queue_no_ready ON {schema}.tenant_queue (queue, vt) WHERE state = {no_ready};
CREATE INDEX tenant_queue_order ON {schema}.tenant_queue (queue, vt, ready_since) WHERE state = {open};
CREATE INDEX tenant_queue_parked ON {schema}.tenant_queue (queue, parked_until, parked_vt, parked_since) WHERE state = {parked};

-- One task of one tenant in one queue, while it has jobs. `state`: {no_ready}, {open} or {parked}. The head is its
-- first ready job, or an earlier position: scans of `job_ready` start there.
CREATE TABLE {schema}.strand (
  queue        text   COLLATE "C" NOT NULL,
  tenant       text   COLLATE "C" NOT NULL,
  task         text   COLLATE "C" NOT NULL,
  ver          bigint NOT NULL,
  state        smallint NOT NULL DEFAULT 0,
  head_key     bigint,
  head_id      uuid,
  parked       text   COLLATE "C",             -- the reason: gate, rate, paused
  subject      text   COLLATE "C",
  gate         text   COLLATE "C",             -- the gate whose line it waits in
  parked_until bigint,
  parked_vt    bigint NOT NULL DEFAULT 0,
  parked_since bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX strand_name ON {schema}.strand (queue, tenant, task, ver DESC);
CREATE INDEX strand_open ON {schema}.strand (queue, tenant, head_key, head_id) WHERE state = {open};
CREATE INDEX strand_parked ON {schema}.strand (queue, parked_until, parked_vt, parked_since, task) WHERE state = {parked};
CREATE INDEX strand_line ON {schema}.strand (queue, gate, parked_vt, parked_since, task) WHERE gate IS NOT NULL;
CREATE INDEX strand_gate ON {schema}.strand (gate, queue) WHERE gate IS NOT NULL;
CREATE INDEX strand_task ON {schema}.strand (task, queue) WHERE state = {parked};
CREATE INDEX strand_parked_tenant ON {schema}.strand (queue, tenant) WHERE state = {parked};

CREATE TABLE {schema}.queue (
  name         text   COLLATE "C" NOT NULL,
  ver          bigint NOT NULL,
  vt_floor     bigint NOT NULL DEFAULT 0,      -- virtual time of the last job served: who enters starts no lower
  vt_scan_from bigint NOT NULL DEFAULT 0,      -- no open tenant queue has a lower vt: scans for the next one start here
  sequence     bigint NOT NULL DEFAULT 0,      -- numbers tenants in the order in which they became ready
  waiting      bigint NOT NULL DEFAULT 0,
  seen         pg_snapshot,                    -- what the last complete application of deltas saw: their scans start here
  swept_at     bigint NOT NULL DEFAULT 0,      -- when promote last looked at everything, wherever scans start
  swept_to     bigint NOT NULL DEFAULT 0,      -- `vt_floor` at that sweep
  due_from     bigint NOT NULL DEFAULT 0,      -- no delayed job is due before: scans for due jobs start here
  unparked_to  bigint NOT NULL DEFAULT 0       -- nothing is parked until an earlier instant: scans of what is parked start here
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_name ON {schema}.queue (name, ver DESC);

-- What happened to a strand without the queue's lock. Appended by the transaction in which it happened, applied to
-- `tenant_queue`, `strand` and `queue` by the next holder of the lock. Nobody ever waits for a row here.
CREATE TABLE {schema}.delta (
  xid      xid8   NOT NULL DEFAULT pg_current_xact_id(),
  ord      int    NOT NULL,                    -- order within its transaction
  queue    text   COLLATE "C" NOT NULL,
  tenant   text   COLLATE "C" NOT NULL,
  task     text   COLLATE "C" NOT NULL,
  delayed  int    NOT NULL DEFAULT 0,
  ready    int    NOT NULL DEFAULT 0,
  head_key bigint,                             -- the lowest of those that became ready
  head_id  uuid,
  vt       bigint NOT NULL DEFAULT 0,          -- a correction of what was charged
  took     bigint,                             -- how long one run took, for the estimate of (queue, task)
  is_freed boolean NOT NULL DEFAULT false,     -- a capped claim has ended
  delayed_at bigint                            -- none of the jobs that it delays is due before
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX delta_order ON {schema}.delta (queue, xid, ord);

-- How many finished jobs are kept: a sum, and what is not yet added to it.
CREATE TABLE {schema}.tally (
  tenant text   COLLATE "C" NOT NULL,
  queue  text   COLLATE "C" NOT NULL,
  state  text   COLLATE "C" NOT NULL,
  jobs   bigint NOT NULL,
  PRIMARY KEY (tenant, queue, state)
);
CREATE TABLE {schema}.tally_delta (
  tenant text   COLLATE "C" NOT NULL,
  queue  text   COLLATE "C" NOT NULL,
  state  text   COLLATE "C" NOT NULL,
  jobs   bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.idempotency (
  tenant      text  COLLATE "C" NOT NULL,
  key         text  COLLATE "C" NOT NULL,
  id          uuid  NOT NULL,
  fingerprint bytea NOT NULL,
  state       text  COLLATE "C",
  settled_at  bigint,
  PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_settled ON {schema}.idempotency (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE {schema}.dedup (
  tenant text COLLATE "C" NOT NULL,
  task   text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,
  id     uuid NOT NULL,
  PRIMARY KEY (tenant, task, key)
);

-- What is stored about a subject, encoded by `fairlane.store.policy_records`. `effective_rule` and `hold` are derived from it.
CREATE TABLE {schema}.policy (
  kind     text COLLATE "C" NOT NULL,
  name     text COLLATE "C" NOT NULL,
  declared bytea,
  override bytea,
  paused   bytea,
  closed   bytea,
  PRIMARY KEY (kind, name)
);

-- What is in force for a subject, from `since` on and before `until`, as numbers that SQL can look up. Of a tenant: queue ''
-- holds its stride, a queue's name or '*' (every other queue) its limits there. Of a queue: queue '' holds its own rate and
-- cost, queue '*' the limits of each tenant in it. Of a task and a gate: queue ''.
CREATE TABLE {schema}.effective_rule (
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
  rate_id     text,
  max_waiting int,
  cost        text,
  gate        text   COLLATE "C",
  gate_limit  int,
  PRIMARY KEY (kind, name, queue, since)
);
-- An enqueue asks first whether anything at all limits what may wait.
CREATE INDEX effective_rule_waiting ON {schema}.effective_rule (kind, name)
  WHERE waiting IS NOT NULL OR max_waiting IS NOT NULL;

CREATE TABLE {schema}.hold (
  verb   text   COLLATE "C" NOT NULL,           -- paused, closed
  kind   text   COLLATE "C" NOT NULL,
  name   text   COLLATE "C" NOT NULL,
  until  bigint NOT NULL,
  reason text   NOT NULL,
  PRIMARY KEY (kind, name, verb)
);

-- Each policy change that may have held somebody back, in commit order, and the last one that each queue has applied:
-- whatever the subject held there is due to be unparked at the instant of the change.
CREATE TABLE {schema}.policy_change (
  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at   bigint NOT NULL,
  kind text   COLLATE "C" NOT NULL,
  name text   COLLATE "C" NOT NULL
);
CREATE INDEX policy_change_subject ON {schema}.policy_change (kind, name, id);
CREATE TABLE {schema}.applied_policy_change (
  queue     text   COLLATE "C" PRIMARY KEY,
  change_id bigint NOT NULL
) WITH (fillfactor = 50);

-- When the rate of a queue, task or gate allows the next start. Rewritten at every start: no unique index, newest first.
CREATE TABLE {schema}.rate_state (
  kind            text   COLLATE "C" NOT NULL,
  name            text   COLLATE "C" NOT NULL,
  next_allowed_at bigint NOT NULL,
  rate_id         text   NOT NULL,
  ver             bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX rate_state_name ON {schema}.rate_state (kind, name, ver DESC);

-- Slots of a gate are counted from the first claim on that still holds one. Written under the lock of all gates.
CREATE TABLE {schema}.gate (
  name  text   COLLATE "C" NOT NULL,
  ver   bigint NOT NULL,
  since bigint NOT NULL                        -- no claim that holds a slot was started before
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX gate_name ON {schema}.gate (name, ver DESC);

-- The expected duration of a task, where a queue counts seconds.
CREATE TABLE {schema}.estimate (
  queue    text   COLLATE "C" NOT NULL,
  task     text   COLLATE "C" NOT NULL,
  estimate bigint NOT NULL,
  PRIMARY KEY (queue, task)
) WITH (fillfactor = 50);

CREATE TABLE {schema}.worker (
  id           text   COLLATE "C" PRIMARY KEY,
  record       bytea  NOT NULL,                -- a `WorkerRecord`
  tasks        text[] NOT NULL,                -- the names of its tasks, in their order, and a `TaskRecord` of each
  task_records bytea[] NOT NULL,
  state        text   NOT NULL,
  started_at   bigint NOT NULL,
  beat_at      bigint NOT NULL,                -- the last heartbeat
  running      int    NOT NULL DEFAULT 0,
  settled      bigint NOT NULL DEFAULT 0,
  failed       bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE {schema}.published_task (
  name    text   COLLATE "C" PRIMARY KEY,
  record  bytea  NOT NULL,
  seen_at bigint NOT NULL
);

CREATE TABLE {schema}.lead (
  name   text   COLLATE "C" PRIMARY KEY,
  worker text   COLLATE "C" NOT NULL,
  until  bigint NOT NULL
) WITH (fillfactor = 50);

-- What one round of a batch claim has chosen. See functions/claims/claim_batch.sql.
CREATE TYPE {schema}.batch_choice AS (
  jobs          tid[],                         -- in the order served, and for each:
  capped        boolean[],                     --   its tenant has a running limit
  owners        text[],                        --   its tenant
  last_vt       bigint,                        -- the virtual time at which the last one was served
  expires_at    bigint,                        -- the earliest of the chosen jobs
  tasks         text[],
  is_started    boolean,                       -- some de-duplication key is free as soon as its job starts
  has_rate      boolean,                       -- some chosen tenant has a rate
  tenant_queues tid[],                         -- every tenant queue that was met, and for each:
  tenants       text[],
  new_vts       bigint[],
  served        int[],
  opens         boolean[],                     --   it still has an open strand
  head_keys     bigint[],
  parks         boolean[],                     --   it is to be parked at its running limit
  strands       tid[],                         -- every strand whose head changes, and its new head (NULL: none left)
  keys          bigint[],
  ids           uuid[]
);

-- The keys of a job that has finished. See functions/claims/end_jobs.sql.
CREATE TYPE {schema}.finished_keys AS (
  id              uuid,
  tenant          text,
  task            text,
  state           text,
  idempotency_key text,
  dedup_key       text
);
