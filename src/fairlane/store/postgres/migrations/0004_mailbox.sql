-- Questions to workers and their answers (S70), kept for an hour. A new table: no other is touched.
CREATE TABLE {schema}.question (
  id          uuid   PRIMARY KEY,
  worker      text   COLLATE "C" NOT NULL,
  kind        text   NOT NULL,
  asked_at    bigint NOT NULL,
  until       bigint NOT NULL,                 -- no answer is taken afterwards
  answered_at bigint,
  answer      bytea
);
CREATE INDEX question_worker ON {schema}.question (worker, asked_at, id);
