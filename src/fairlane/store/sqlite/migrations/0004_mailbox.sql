-- Purpose: questions to workers and their answers (S70), kept for an hour.

CREATE TABLE question (
  id          TEXT PRIMARY KEY,
  worker      TEXT NOT NULL,
  kind        TEXT NOT NULL,
  asked_at    INTEGER NOT NULL,
  until       INTEGER NOT NULL,
  answered_at INTEGER,
  answer      BLOB
) STRICT;
CREATE INDEX question_worker ON question (worker, asked_at, id);
