-- Purpose: the review of dead letters (S75) and the two journals (S60, S76).
--
-- What people decide about a dead job moves from dead into the narrow table letter: rows of dead hold tracebacks, and
-- SQLite writes a whole row anew when one of its columns changes. Letters of before keep their review and have no
-- fingerprint. The three columns that leave dead cost one pass over it each, once.

-- What is known and decided about a dead job. record is NULL as long as nobody has done anything. decided_at is when the
-- letter was resolved, ignored or discarded; new_job is the job in its place, as long as nobody knows how that ends.
CREATE TABLE letter (
  seq             INTEGER PRIMARY KEY,
  id              BLOB NOT NULL,
  settled_at      INTEGER NOT NULL,
  tenant          TEXT NOT NULL,
  queue           TEXT NOT NULL,
  task            TEXT NOT NULL,
  error_class     TEXT,
  fingerprint     TEXT NOT NULL DEFAULT '',
  review          TEXT NOT NULL DEFAULT 'pending',
  is_acknowledged INTEGER NOT NULL DEFAULT 0,
  notes           INTEGER NOT NULL DEFAULT 0,
  decided_at      INTEGER,
  new_job         BLOB,
  record          BLOB
) STRICT;
INSERT INTO letter (seq, id, settled_at, tenant, queue, task, error_class, review)
  SELECT seq, dead.id, settled_at, tenant, queue, task, error_class, review FROM dead JOIN body USING (seq);
CREATE INDEX letter_settled ON letter (settled_at, id);
CREATE INDEX letter_tenant ON letter (tenant, settled_at, id);
CREATE INDEX letter_fingerprint ON letter (fingerprint, settled_at, id);
CREATE INDEX letter_review ON letter (review, settled_at, id);
CREATE INDEX letter_count ON letter (tenant, queue, review);
CREATE INDEX letter_new_job ON letter (new_job) WHERE new_job IS NOT NULL;

DROP INDEX dead_settled;
ALTER TABLE dead DROP COLUMN id;
ALTER TABLE dead DROP COLUMN error_class;
ALTER TABLE dead DROP COLUMN review;

-- Entries that have no number yet. No place is used twice.
CREATE TABLE pending_entry (
  place   INTEGER PRIMARY KEY AUTOINCREMENT,
  journal TEXT NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  tenant  TEXT,
  subject TEXT NOT NULL,
  count   INTEGER NOT NULL,
  body    BLOB NOT NULL
) STRICT;
CREATE INDEX pending_entry_journal ON pending_entry (journal, place);

-- Entries with a number.
CREATE TABLE entry (
  journal TEXT NOT NULL,
  number  INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  tenant  TEXT,
  subject TEXT NOT NULL,
  count   INTEGER NOT NULL,
  body    BLOB NOT NULL,
  seal    BLOB NOT NULL,
  PRIMARY KEY (journal, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_tenant ON entry (journal, tenant, number) WHERE tenant IS NOT NULL;
CREATE INDEX entry_subject ON entry (journal, subject, number);

-- Where each journal ends, and what its duty remembers.
CREATE TABLE journal (
  name     TEXT PRIMARY KEY,
  revision INTEGER NOT NULL,
  last     INTEGER NOT NULL,
  memory   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO journal VALUES ('audit', 0, 0, x''), ('events', 0, 0, x'');
