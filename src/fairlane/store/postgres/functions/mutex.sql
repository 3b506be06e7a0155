-- Take the mutex of a queue until the end of the transaction.
-- It must be the first statement of a transaction in READ COMMITTED: what follows then reads snapshots that are newer
-- than everything the last holder did. Who needs several takes them in the order of the queues' names.
CREATE OR REPLACE FUNCTION {s}.mutex(p_queue text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the mutex of a queue holds only in READ COMMITTED, this transaction is %',
      current_setting('transaction_isolation') USING ERRCODE = 'invalid_transaction_state';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended($s${s} queue $s$ || p_queue, 0));
END $$;

-- Take it only if nobody else has it; say whether.
CREATE OR REPLACE FUNCTION {s}.try_mutex(p_queue text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT pg_try_advisory_xact_lock(hashtextextended($s${s} queue $s$ || p_queue, 0))
$$;
