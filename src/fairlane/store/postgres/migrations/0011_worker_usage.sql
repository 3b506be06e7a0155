-- What the process of a worker uses, as its last heartbeat says (S122): bytes, and processors kept busy.
ALTER TABLE {schema}.worker ADD COLUMN memory bigint, ADD COLUMN cpu double precision;
