-- Purpose: the schema of version 1.
--
-- A job is one row in body for its whole life, and one narrow row in exactly one of live (delayed, ready, running),
-- history (succeeded, cancelled) and dead: claims and settlements touch only narrow rows. Instants are microseconds
-- since 1970. States are spelled as in the model.

-- Single values: counters that tell processes of changes, the last heartbeat, what the file is dedicated to.
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;

-- What a job is: written once by enqueue; only an edit or forget changes it. seq is the order of enqueue.
CREATE TABLE body (
  seq             INTEGER PRIMARY KEY,
  id              BLOB NOT NULL,
  tenant          TEXT NOT NULL,
  queue           TEXT NOT NULL,
  task            TEXT NOT NULL,
  payload         BLOB NOT NULL,
  checksum        INTEGER NOT NULL,
  version         INTEGER NOT NULL,
  priority        INTEGER NOT NULL,
  enqueued_at     INTEGER NOT NULL,
  expires_at      INTEGER,
  idempotency_key TEXT,
  dedup_key       TEXT,
  dedup_until     TEXT NOT NULL,
  correlation_id  TEXT,
  parent_id       BLOB,
  max_attempts    INTEGER NOT NULL,
  timeout         INTEGER,
  at_most_once    INTEGER NOT NULL,
  tags            BLOB,
  metadata        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX body_id ON body (id);
CREATE INDEX body_time ON body (enqueued_at, id);
CREATE INDEX body_tenant ON body (tenant, enqueued_at, id);
CREATE INDEX body_correlation ON body (correlation_id, enqueued_at, id) WHERE correlation_id IS NOT NULL;

-- Jobs that are delayed, ready or running, with their claims.
CREATE TABLE live (
  seq             INTEGER PRIMARY KEY,
  state           TEXT NOT NULL,
  because         TEXT,
  run_at          INTEGER NOT NULL,
  sort_key        INTEGER NOT NULL,
  attempt         INTEGER NOT NULL DEFAULT 0,
  failures        INTEGER NOT NULL DEFAULT 0,
  crashes         INTEGER NOT NULL DEFAULT 0,
  crashes_alone   INTEGER NOT NULL DEFAULT 0,
  snoozes         INTEGER NOT NULL DEFAULT 0,
  is_suspect      INTEGER NOT NULL DEFAULT 0,
  fence           INTEGER NOT NULL DEFAULT 0,
  settled_at      INTEGER,
  result          BLOB,
  attempts        BLOB,
  worker          TEXT,
  started_at      INTEGER,
  lease_until     INTEGER,
  is_cancel_asked INTEGER NOT NULL DEFAULT 0,
  progress        BLOB,
  strand          INTEGER NOT NULL,
  expires_at      INTEGER,
  gate            TEXT,
  is_alone        INTEGER NOT NULL DEFAULT 0,
  charged         INTEGER,
  queue           TEXT NOT NULL
) STRICT;
CREATE INDEX live_due ON live (queue, run_at) WHERE state = 'delayed';
CREATE INDEX live_lease ON live (lease_until, seq) WHERE state = 'running';
CREATE INDEX live_expiry ON live (expires_at, seq) WHERE expires_at IS NOT NULL;
CREATE INDEX live_asked ON live (worker, seq) WHERE is_cancel_asked = 1;

-- Jobs that succeeded or were cancelled.
CREATE TABLE history (
  seq           INTEGER PRIMARY KEY,
  state         TEXT NOT NULL,
  because       TEXT,
  run_at        INTEGER NOT NULL,
  sort_key      INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  failures      INTEGER NOT NULL,
  crashes       INTEGER NOT NULL,
  crashes_alone INTEGER NOT NULL,
  snoozes       INTEGER NOT NULL,
  is_suspect    INTEGER NOT NULL,
  fence         INTEGER NOT NULL,
  settled_at    INTEGER NOT NULL,
  result        BLOB,
  attempts      BLOB
) STRICT;
CREATE INDEX history_settled ON history (settled_at, seq);

-- Dead letters.
CREATE TABLE dead (
  seq           INTEGER PRIMARY KEY,
  state         TEXT NOT NULL,
  because       TEXT,
  run_at        INTEGER NOT NULL,
  sort_key      INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  failures      INTEGER NOT NULL,
  crashes       INTEGER NOT NULL,
  crashes_alone INTEGER NOT NULL,
  snoozes       INTEGER NOT NULL,
  is_suspect    INTEGER NOT NULL,
  fence         INTEGER NOT NULL,
  settled_at    INTEGER NOT NULL,
  result        BLOB,
  attempts      BLOB,
  id            BLOB NOT NULL,
  error_class   TEXT,
  review        TEXT NOT NULL DEFAULT 'pending'
) STRICT;
CREATE INDEX dead_settled ON dead (settled_at, id);

-- The ready jobs of each strand, in the order in which claims take them.
CREATE TABLE ready (
  strand   INTEGER NOT NULL,
  sort_key INTEGER NOT NULL,
  id       BLOB NOT NULL,
  seq      INTEGER NOT NULL,
  PRIMARY KEY (strand, sort_key, id)
) STRICT, WITHOUT ROWID;

-- One tenant in one queue: its clock (vt), its counts, the state of its rate, why it is parked.
CREATE TABLE tenant_queue (
  tenant_queue    INTEGER PRIMARY KEY,
  queue           TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  vt              INTEGER NOT NULL DEFAULT 0,
  ready_since     INTEGER NOT NULL DEFAULT 0,
  is_ready        INTEGER NOT NULL DEFAULT 0,
  open_strands    INTEGER NOT NULL DEFAULT 0,
  delayed         INTEGER NOT NULL DEFAULT 0,
  ready           INTEGER NOT NULL DEFAULT 0,
  running         INTEGER NOT NULL DEFAULT 0,
  next_allowed_at INTEGER NOT NULL DEFAULT 0,
  rate_id         TEXT NOT NULL DEFAULT '',
  parked          TEXT,
  parked_until    INTEGER,
  parked_vt       INTEGER NOT NULL DEFAULT 0,
  parked_since    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX tenant_queue_name ON tenant_queue (queue, tenant);
CREATE INDEX tenant_queue_order ON tenant_queue (queue, vt, ready_since) WHERE is_ready = 1;
CREATE INDEX tenant_queue_newcomers ON tenant_queue (queue, vt, ready_since) WHERE is_ready = 1 AND running = 0;
CREATE INDEX tenant_queue_parked ON tenant_queue (queue, parked_until, parked_vt, parked_since)
  WHERE parked IS NOT NULL;
CREATE INDEX tenant_queue_tenant ON tenant_queue (tenant, queue);

-- One task of a tenant queue: its counts, its first ready job, why it is parked.
CREATE TABLE strand (
  strand       INTEGER PRIMARY KEY,
  tenant_queue INTEGER NOT NULL,
  queue        TEXT NOT NULL,
  task         TEXT NOT NULL,
  jobs         INTEGER NOT NULL DEFAULT 0,
  ready        INTEGER NOT NULL DEFAULT 0,
  head_key     INTEGER,
  head_id      BLOB,
  parked       TEXT,
  gate         TEXT,
  parked_until INTEGER,
  parked_vt    INTEGER NOT NULL DEFAULT 0,
  parked_since INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX strand_name ON strand (tenant_queue, task);
CREATE INDEX strand_tenant_queue ON strand (tenant_queue, head_key, head_id)
  WHERE parked IS NULL AND head_key IS NOT NULL;
CREATE INDEX strand_parked ON strand (queue, parked_until, parked_vt, parked_since, task)
  WHERE parked IS NOT NULL;
CREATE INDEX strand_line ON strand (queue, gate, parked_vt, parked_since, task) WHERE gate IS NOT NULL;
CREATE INDEX strand_gate ON strand (gate, queue) WHERE gate IS NOT NULL;
CREATE INDEX strand_task ON strand (task) WHERE parked IS NOT NULL;

-- The floor of a queue's virtual time and the state of its rate.
CREATE TABLE queue (
  name            TEXT PRIMARY KEY,
  floor           INTEGER NOT NULL DEFAULT 0,
  next_allowed_at INTEGER NOT NULL DEFAULT 0,
  rate_id         TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- The state of a task's rate.
CREATE TABLE task (
  name            TEXT PRIMARY KEY,
  next_allowed_at INTEGER NOT NULL DEFAULT 0,
  rate_id         TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- The used slots of a gate and the state of its rate.
CREATE TABLE gate (
  name            TEXT PRIMARY KEY,
  used            INTEGER NOT NULL DEFAULT 0,
  next_allowed_at INTEGER NOT NULL DEFAULT 0,
  rate_id         TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- How long a task is expected to run in a queue.
CREATE TABLE estimate (
  queue    TEXT NOT NULL,
  task     TEXT NOT NULL,
  estimate INTEGER NOT NULL,
  PRIMARY KEY (queue, task)
) STRICT, WITHOUT ROWID;

-- How many finished jobs a tenant has in a queue, by state.
CREATE TABLE tally (
  tenant TEXT NOT NULL,
  queue  TEXT NOT NULL,
  state  TEXT NOT NULL,
  jobs   INTEGER NOT NULL,
  PRIMARY KEY (tenant, queue, state)
) STRICT, WITHOUT ROWID;

-- Idempotency keys; state and settled_at once their job is finished.
CREATE TABLE idempotency (
  tenant      TEXT NOT NULL,
  key         TEXT NOT NULL,
  id          BLOB NOT NULL,
  fingerprint BLOB NOT NULL,
  state       TEXT,
  settled_at  INTEGER,
  PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_settled ON idempotency (settled_at) WHERE settled_at IS NOT NULL;

-- Dedup keys in use.
CREATE TABLE dedup (
  tenant TEXT NOT NULL,
  task   TEXT NOT NULL,
  key    TEXT NOT NULL,
  id     BLOB NOT NULL,
  PRIMARY KEY (tenant, task, key)
) STRICT, WITHOUT ROWID;

-- Rules, overrides, pauses and closes by subject.
CREATE TABLE policy (
  kind     TEXT NOT NULL,
  name     TEXT NOT NULL,
  declared BLOB,
  override BLOB,
  paused   BLOB,
  closed   BLOB,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- Workers and their heartbeats.
CREATE TABLE worker (
  id         TEXT PRIMARY KEY,
  record     BLOB NOT NULL,
  state      TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  beat_at    INTEGER NOT NULL,
  running    INTEGER NOT NULL DEFAULT 0,
  settled    INTEGER NOT NULL DEFAULT 0,
  failed     INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Tasks that workers have published.
CREATE TABLE published (
  name    TEXT PRIMARY KEY,
  record  BLOB NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who leads which duty, and until when.
CREATE TABLE lead (
  name   TEXT PRIMARY KEY,
  worker TEXT NOT NULL,
  until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
