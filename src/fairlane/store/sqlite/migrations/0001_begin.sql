-- The first schema: bodies that never change, and narrow rows that move between three homes.
--
-- A job is one row in `body` for its whole life, written once, and one row in exactly one home: `live`
-- (delayed, ready, running), `history` (succeeded, cancelled) or `dead`. Claims and settlements touch only
-- narrow rows. `ready` is the order inside a strand. `turn` is one (queue, tenant), `strand` one
-- (queue, tenant, task). Instants are microseconds. States are spelled as in `State`.

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;

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
  metadata        BLOB NOT NULL,
  created_by      TEXT
) STRICT;
CREATE UNIQUE INDEX body_id ON body (id);
CREATE INDEX body_time ON body (enqueued_at, id);
CREATE INDEX body_tenant ON body (tenant, enqueued_at, id);
CREATE INDEX body_correlation ON body (correlation_id, enqueued_at, id) WHERE correlation_id IS NOT NULL;

CREATE TABLE live (
  seq             INTEGER PRIMARY KEY,
  state           TEXT NOT NULL,
  because         TEXT,
  run_at          INTEGER NOT NULL,
  sort_key        INTEGER NOT NULL,
  attempt         INTEGER NOT NULL,
  failures        INTEGER NOT NULL,
  crashes         INTEGER NOT NULL,
  crashes_alone   INTEGER NOT NULL,
  snoozes         INTEGER NOT NULL,
  is_suspect      INTEGER NOT NULL,
  fence           INTEGER NOT NULL,
  settled_at      INTEGER,
  result          BLOB,
  attempts        BLOB,
  worker          TEXT,
  started_at      INTEGER,
  lease_until     INTEGER,
  is_cancel_asked INTEGER NOT NULL,
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

CREATE TABLE history (
  seq             INTEGER PRIMARY KEY,
  state           TEXT NOT NULL,
  because         TEXT,
  run_at          INTEGER NOT NULL,
  sort_key        INTEGER NOT NULL,
  attempt         INTEGER NOT NULL,
  failures        INTEGER NOT NULL,
  crashes         INTEGER NOT NULL,
  crashes_alone   INTEGER NOT NULL,
  snoozes         INTEGER NOT NULL,
  is_suspect      INTEGER NOT NULL,
  fence           INTEGER NOT NULL,
  settled_at      INTEGER NOT NULL,
  result          BLOB,
  attempts        BLOB
) STRICT;
CREATE INDEX history_settled ON history (settled_at, seq);

CREATE TABLE dead (
  seq             INTEGER PRIMARY KEY,
  state           TEXT NOT NULL,
  because         TEXT,
  run_at          INTEGER NOT NULL,
  sort_key        INTEGER NOT NULL,
  attempt         INTEGER NOT NULL,
  failures        INTEGER NOT NULL,
  crashes         INTEGER NOT NULL,
  crashes_alone   INTEGER NOT NULL,
  snoozes         INTEGER NOT NULL,
  is_suspect      INTEGER NOT NULL,
  fence           INTEGER NOT NULL,
  settled_at      INTEGER NOT NULL,
  result          BLOB,
  attempts        BLOB,
  id              BLOB NOT NULL,
  error_class     TEXT,
  review          TEXT NOT NULL DEFAULT 'pending'
) STRICT;
CREATE INDEX dead_settled ON dead (settled_at, id);

CREATE TABLE ready (
  strand   INTEGER NOT NULL,
  sort_key INTEGER NOT NULL,
  id       BLOB NOT NULL,
  seq      INTEGER NOT NULL,
  PRIMARY KEY (strand, sort_key, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE turn (
  turn         INTEGER PRIMARY KEY,
  queue        TEXT NOT NULL,
  tenant       TEXT NOT NULL,
  vt           INTEGER NOT NULL DEFAULT 0,
  ready_since  INTEGER NOT NULL DEFAULT 0,
  is_ready     INTEGER NOT NULL DEFAULT 0,
  open_strands INTEGER NOT NULL DEFAULT 0,
  delayed      INTEGER NOT NULL DEFAULT 0,
  ready        INTEGER NOT NULL DEFAULT 0,
  running      INTEGER NOT NULL DEFAULT 0,
  arrival      INTEGER NOT NULL DEFAULT 0,
  pace         TEXT NOT NULL DEFAULT '',
  parked       TEXT,
  parked_until INTEGER
) STRICT;
CREATE UNIQUE INDEX turn_name ON turn (queue, tenant);
CREATE INDEX turn_order ON turn (queue, vt, ready_since) WHERE is_ready = 1;
CREATE INDEX turn_newcomers ON turn (queue, vt, ready_since) WHERE is_ready = 1 AND running = 0;
CREATE INDEX turn_parked ON turn (queue, parked_until) WHERE parked IS NOT NULL;

CREATE TABLE strand (
  strand       INTEGER PRIMARY KEY,
  turn         INTEGER NOT NULL,
  queue        TEXT NOT NULL,
  task         TEXT NOT NULL,
  jobs         INTEGER NOT NULL DEFAULT 0,
  ready        INTEGER NOT NULL DEFAULT 0,
  head_key     INTEGER,
  head_id      BLOB,
  parked       TEXT,
  gate         TEXT,
  parked_until INTEGER
) STRICT;
CREATE UNIQUE INDEX strand_name ON strand (turn, task);
CREATE INDEX strand_turn ON strand (turn, head_key, head_id) WHERE parked IS NULL AND head_key IS NOT NULL;
CREATE INDEX strand_parked ON strand (queue, parked_until) WHERE parked IS NOT NULL;
CREATE INDEX strand_gate ON strand (gate, queue) WHERE gate IS NOT NULL;
CREATE INDEX strand_task ON strand (task) WHERE parked IS NOT NULL;

CREATE TABLE queue (
  name    TEXT PRIMARY KEY,
  floor   INTEGER NOT NULL DEFAULT 0,
  arrival INTEGER NOT NULL DEFAULT 0,
  pace    TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE TABLE task (
  name     TEXT PRIMARY KEY,
  estimate INTEGER,
  arrival  INTEGER NOT NULL DEFAULT 0,
  pace     TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE TABLE gate (
  name    TEXT PRIMARY KEY,
  used    INTEGER NOT NULL DEFAULT 0,
  arrival INTEGER NOT NULL DEFAULT 0,
  pace    TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE TABLE tally (
  tenant TEXT NOT NULL,
  queue  TEXT NOT NULL,
  state  TEXT NOT NULL,
  jobs   INTEGER NOT NULL,
  PRIMARY KEY (tenant, queue, state)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE dedup (
  tenant TEXT NOT NULL,
  task   TEXT NOT NULL,
  key    TEXT NOT NULL,
  id     BLOB NOT NULL,
  PRIMARY KEY (tenant, task, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE policy (
  kind     TEXT NOT NULL,
  name     TEXT NOT NULL,
  declared BLOB,
  override BLOB,
  paused   BLOB,
  closed   BLOB,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
  id          TEXT PRIMARY KEY,
  card        BLOB NOT NULL,
  state       TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  beat_at     INTEGER NOT NULL,
  running     INTEGER NOT NULL DEFAULT 0,
  settled   INTEGER NOT NULL DEFAULT 0,
  failed      INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE published (
  name    TEXT PRIMARY KEY,
  card    BLOB NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lead (
  name   TEXT PRIMARY KEY,
  worker TEXT NOT NULL,
  until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
