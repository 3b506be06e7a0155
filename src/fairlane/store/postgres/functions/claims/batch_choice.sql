-- What one round of `claim_batch` has chosen, before anything of it is written. A type alone: no parameters, index or locks.
-- CREATE OR REPLACE cannot change a type, so it is made anew with the functions that return it, as `claim_reply` is.
DROP TYPE IF EXISTS {schema}.batch_choice CASCADE;
CREATE TYPE {schema}.batch_choice AS (
  jobs          tid[],                         -- in the order served, and for each:
  capped        boolean[],                     --   its tenant has a running limit
  owners        text[],                        --   its tenant
  careful       boolean[],                     --   it may not be claimed ahead
  last_vt       bigint,                        -- the virtual time at which the last one was served
  expires_at    bigint,                        -- the earliest of the chosen jobs
  tasks         text[],
  is_started    boolean,                       -- some de-duplication key is free as soon as its job starts
  has_rate      boolean,                       -- some chosen tenant has a rate
  tenant_queues tid[],                         -- every tenant queue that was met, and for each:
  tenants       text[],
  new_vts       bigint[],
  served        int[],
  opens         boolean[],                     --   it still has an open strand
  head_keys     bigint[],
  parks         boolean[],                     --   it is to be parked at its running limit
  strands       tid[],                         -- every strand whose head changes, and its new head (NULL: none left)
  keys          bigint[],
  ids           uuid[]
);
