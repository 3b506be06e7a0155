-- What the process of a worker uses, as its last heartbeat says (S122): bytes, and processors kept busy.
ALTER TABLE worker ADD COLUMN memory INTEGER;
ALTER TABLE worker ADD COLUMN cpu REAL;
