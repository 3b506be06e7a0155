-- The advisory locks of an installation, in the order in which a transaction may take them:
--
--   1. the lock of a queue (`lock_queue`); several in the order of their names. It guards the queue's rows of
--   `queue`, `tenant_queue` and `strand`, and which of its waiting jobs are claimed or changed.
--   2. the lock of all breakers (`lock_breakers`), which claims share: what opens or closes one waits for those under way.
--   3. the lock of all gates and of all rates of tasks (`lock_gates`). One lock for all of them: a claim meets gates
--   in any order, and with a lock each two claims of different queues could wait for each other.
--
-- Row locks come after: `settle` and `reclaim` lock rows of `job` and take neither of these. Other advisory locks
-- stand alone: "policies" (one policy change at a time), "days" and "tally" (history_days.sql), "prune", "migrate".
-- All end with the transaction.

-- Take the lock of a queue until the end of the transaction. It must be the first statement of a transaction in READ
-- COMMITTED: only then do later statements read snapshots newer than all that the last holder did.
CREATE OR REPLACE FUNCTION {schema}.lock_queue(p_queue text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the lock of a queue holds only in READ COMMITTED, this transaction is %',
      current_setting('transaction_isolation') USING ERRCODE = 'invalid_transaction_state';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended($s${schema} queue $s$ || p_queue, 0));
END $$;

-- Take it only if nobody else has it; return whether.
CREATE OR REPLACE FUNCTION {schema}.try_lock_queue(p_queue text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT pg_try_advisory_xact_lock(hashtextextended($s${schema} queue $s$ || p_queue, 0))
$$;

-- Take the lock that all gates and all rates of tasks share, until the end of the transaction.
CREATE OR REPLACE FUNCTION {schema}.lock_gates() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended($s${schema} gates$s$, 0));
END $$;
