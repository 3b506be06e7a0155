-- Where the looks for due jobs and for what is parked until now begin: behind the dead entries that an old snapshot keeps.
ALTER TABLE {s}.queue
  ADD COLUMN due_from bigint NOT NULL DEFAULT 0,   -- no delayed job is due before
  ADD COLUMN due_next bigint NOT NULL DEFAULT 0,   -- what `due_from` becomes
  ADD COLUMN due_xid  xid8   NOT NULL DEFAULT '0', -- when all transactions before this one have ended
  ADD COLUMN woken_to bigint NOT NULL DEFAULT 0;   -- nothing is parked until an instant before
