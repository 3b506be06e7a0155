-- Who asked for a job: stored with it in every home. Adds a nullable column, so no table is rewritten; waits for open
-- transactions that use the tables. Partitions of `history` follow their parent.
ALTER TABLE {schema}.job ADD COLUMN created_by text COLLATE "C";
ALTER TABLE {schema}.history ADD COLUMN created_by text COLLATE "C";
ALTER TABLE {schema}.dead ADD COLUMN created_by text COLLATE "C";
