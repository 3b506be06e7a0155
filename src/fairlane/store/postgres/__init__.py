"""The PostgreSQL store: one installation in one schema, shared by any number of processes and machines.

Where things are
    `store.py` puts twelve facets together. `jobs/`, `claims/`, `policies/`, `dead/` and `upkeep/` are
    facets with a file for each larger verb (the class is in `facet.py`); `registry.py`, `mailbox.py`,
    `journal.py`, `access.py`, `budgets.py`, `history.py` and `schedules.py` are facets in one file.
    `connection.py` has the pools, `statements.py` loads SQL, `columns.py` is the list of a job's columns and
    `rows.py` decodes them. `sql/` holds the statements that Python sends, `functions/` the PL/pgSQL that does
    the work on the server, in folders of the same names; `functions/queues/` is what they share.
    `migrations/` makes the tables; functions are installed again whenever their text changes.

Who owns what
    `job`, `history`, `dead`      jobs: waiting and running, finished (one partition a day), dead letters
                                  with their review.
    `tenant_queue`, `strand`      the fair order: a row for each tenant in a queue, and for each of its tasks.
    `queue`                       one row for each queue: the floor of virtual time, where scans start, how
                                  many jobs wait.
    `estimate`                    how long a task takes, where a queue counts seconds.
    `delta`                       changes of strands, made without the lock of the queue, not applied yet.
    `policy`                      what was declared, overridden, paused and closed; derived from it are
    `effective_rule`, `hold`      what is in force, as numbers. `policy_change` tells queues what has changed,
                                  `applied_policy_change` how far each of them is.
    `idempotency`, `dedup`        the keys of jobs.
    `rate_state`, `gate`          rates of queues, tasks and gates; where the count of a gate's slots starts.
    `tally`, `tally_delta`        how many finished jobs there are.
    `pending_entry`, `entry`      the journals: what steps have appended, and the same with numbers;
                                  `journal_end` says where each ends.
    `worker`, `published_task`, `lead`, `meta`    the registry, and the schema's own version.
    `question`                    what operators ask workers, and the answers.
    `access`, `sign_in_attempt`   users, tokens and sessions; how often who tried to sign in.
    Rows of `tenant_queue`, `strand`, `queue` and `estimate` belong to the holder of the queue's lock. A row
    of `job` belongs to that holder while it waits, and to its worker, by fence and row lock, while it runs.
    Enqueue and settle take no queue lock: what the fair order must know they append as deltas (a plain
    success appends none). A settlement may wait for a claim that is flagging its row. A row of `dead`
    belongs to whoever has locked it to decide about it. To a journal everybody appends; its duty alone
    numbers and removes.

Connections
    A `Server` has one pool for each event loop and process, of 2 connections unless the URL or a worker
    asks for more. One of them listens for NOTIFY while somebody waits, and sends NOTIFYs meanwhile. Each
    verb borrows one connection for one statement or one transaction. `apart()` opens a connection outside
    the pool for migrations. `enqueue_in` and `settle_in` use the application's connection
    (`app_connections.py`), inside a savepoint of its open transaction (`app_transaction.py`). Behind
    PgBouncer in transaction mode nothing is prepared and nobody listens: settings go with each transaction,
    and workers poll.

Locks, in the order in which a transaction may take them
    1. the advisory lock of a queue: claim, promote, peek, and every change of waiting jobs; first statement
       of a transaction in READ COMMITTED, so that what follows sees all that the last holder did;
    2. the advisory lock of all gates and of all rates of tasks, where a claim meets one;
    3. rows of `job`: settle waits for them, ascending by id; a cancel waits for one row, a second at most.
       Everybody else skips those that are locked, so the order does no harm: renew by id, reclaim by
       the end of the lease, a claim that flags running jobs (`flag_capped_claims`) in none;
    4. rows of `dead`, ascending by id: who decides about letters waits for them, a pass skips those that
       are locked;
    5. keys, in their order: an enqueue, or the new job of a dead letter, waits for an open transaction that
       has taken the same key, at most 5 s;
    6. the row of a journal's end: its duties wait for each other there, and nobody else asks for it.
    Appending to a journal locks nothing. Enqueue and settle take no advisory lock, so an application's
    transaction may stay open without stopping claims. Policy changes, days of history, tallies, pruning and
    migrations have an advisory lock each, taken alone.

What one round trip does
    enqueue     check limits and closes, take keys, insert jobs, append one delta for each strand. One call
                of `enqueue`; where something may refuse an item, a transaction in which the model decides
                (`BatchAdmission`).
    claim       lock the queue, apply deltas, make due jobs ready, apply policy changes, unpark what
                can be, choose in the fair order, start the attempts: one call of `claim` for each entry of
                the request. It returns rows of `claim_reply`: the jobs, then one row that says when to look
                again. From two queues on, `check_queues` comes first, and a queue with nothing to do gets
                no call. After a queue whose next job may not be claimed ahead no other is asked.
    renew       extend all leases of a worker, store progress, report lost claims and requested cancels.
    settle      lock the rows by id, fence and worker; move finished jobs to `history` or `dead`, let others
                wait again, append deltas and the events of deaths, release keys. A job whose cancel was
                requested, or which expires meanwhile, comes back as doubtful: the model decides in a second
                transaction. A settlement with the next claim is two round trips.
    wake-up     after a commit, queues and workers to wake are sent by NOTIFY, in batches, at most one every
                5 to 40 ms. Waiting workers poll once a second anyway.

What a crash or a lost connection leaves
    Every verb is one transaction for each queue or batch: it happened or it did not. A connection lost
    while something that commits was under way raises `CommitUnknown`; enqueue turns it into
    `EnqueueUnknown`, and the same request can be repeated, because ids and keys find what was stored. A
    repeated settlement finds its fence gone and reports stale. Claims, promotions, renewals and heartbeats
    commit without waiting for the disk: a crash of the server may undo the last moments. That is safe: what
    was promoted is due again, and a fence is at least the store's clock and only grows: a settlement under
    a fence that was undone matches nothing. Enqueues and settlements wait for the disk as the role's
    `synchronous_commit` says. A worker that dies leaves running jobs; their leases end and any worker
    reclaims them. A client that dies leaves at most an open transaction, which the server rolls back. A
    lost NOTIFY costs a second.

Old snapshots
    A transaction that stays open anywhere in the database keeps dead rows from being removed. Rows that are
    rewritten often are therefore found by their newest version (`ver DESC`) and have no unique index, and
    scans start where the last one ended. `due_from`, `unparked_to` and `seen` are reset once a minute
    (`sweep`), `ScanStart` after 60 passes at most. `vt_scan_from` and `tenant_queue.head_key` must be exact:
    nothing repairs them.
"""
