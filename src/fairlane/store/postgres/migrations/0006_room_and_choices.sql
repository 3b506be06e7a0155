-- Room for claims: one writes a second version of the job, and with it a second entry beside the first one of its id. On
-- full pages the server would look for dead entries, or split the page, at every claim. Holds for new pages.
ALTER INDEX {s}.job_id SET (fillfactor = 50);

-- What a round of a claim has chosen: jobs in the order served, and whose they are; what is known of all of them; and what
-- becomes of the turns and strands that were met. See functions/fill.sql.
CREATE TYPE {s}.choice AS (
  jobs       tid[],
  capped     boolean[],                        -- whose tenant has a running limit
  owners     text[],
  tag        bigint,                           -- of the last one
  expires_at bigint,                           -- the earliest
  tasks      text[],
  is_started boolean,                          -- some key is free as soon as its job starts
  has_rate   boolean,                          -- some tenant does
  turns      tid[],
  tenants    text[],
  clocks     bigint[],
  served     int[],
  opens      boolean[],
  low_keys   bigint[],
  parks      boolean[],
  strands    tid[],
  keys       bigint[],
  ids        uuid[]
);

-- The keys that a job had which was taken out. See functions/end_jobs.sql.
CREATE TYPE {s}.keyed AS (
  id              uuid,
  tenant          text,
  task            text,
  state           text,
  idempotency_key text,
  dedup_key       text
);

-- What answers otherwise now, or is no more.
DROP FUNCTION IF EXISTS {s}.choose, {s}.choose_alone, {s}.choose_each, {s}.take_out, {s}.take_out_alike, {s}.end_all_keys,
  {s}.end_keys, {s}.free_dedup;
