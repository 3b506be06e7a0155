-- Who may sign in, and who has (S79), and how often somebody has tried to (S81). New tables: no other is touched.

-- A record, by its kind and key. It is encoded, and holds hashes of passwords and secrets only.
CREATE TABLE {schema}.access (
  kind       text   COLLATE "C" NOT NULL,
  name       text   COLLATE "C" NOT NULL,
  revision   bigint NOT NULL,
  created_at bigint NOT NULL,
  seen_at    bigint,
  expires_at bigint,                           -- not there from then on
  record     bytea  NOT NULL,
  PRIMARY KEY (kind, name)
);
CREATE INDEX access_expires ON {schema}.access (expires_at) WHERE expires_at IS NOT NULL;

-- How many attempts there were under a label, until the count begins anew.
CREATE TABLE {schema}.sign_in_attempt (
  label text   COLLATE "C" PRIMARY KEY,
  count bigint NOT NULL,
  until bigint NOT NULL
) WITH (fillfactor = 50);
