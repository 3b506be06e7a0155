"""The embedded store: one SQLite file, nothing to install or start.

This page says who owns what, which thread runs what, which locks are taken, what a transaction covers, what
is cached, and what a crash leaves. Each module says the rest.

**Where to look.** One package or module per facet of the contract; in a package, mostly one module per verb:

    store.py          builds the store: location, threads, wake-ups, facets
    jobs/             enqueue, admission, idempotency, find, tally, count, line, peek, explain, edit, cancel
    claims/           claim (with fair_order, limits, parking), renew, settle, reclaim, revoke, stuck,
                      promote, expire
    dead/             find, tally, review, reprocess, follow
    policies/         rules, overrides, pause, close; the policies in memory
    upkeep/           prune, forget, purge, census, repair
    access.py, journal.py, mailbox.py, registry.py, inspection.py, wake.py
    tables/           the rows that several verbs share: jobs, letters, tenant queues and strands, counters
    threads.py        the writer and the reader thread; transaction.py is what verbs get from them
    connection.py     opening the file; with file_guard.py, location.py, migrating.py, checkpoints.py
    sql/              every statement, by verb or table; `migrations/` the schema

**The data.** A job has one row in `body`, written once, and one narrow row in exactly one of `live` (delayed,
ready, running), `history` (succeeded, cancelled) and `dead`. `ready` orders the ready jobs of a strand. A job
in `dead` also has a row in `letter`: its review, and the few columns that filters and tallies of dead letters
compare, so that neither they nor a decision touch a row with tracebacks. `tenant_queue` is one tenant in one
queue: its clock and its counts. `strand` is one task of a tenant queue. The small tables `queue`, `task`,
`gate` and `estimate` hold counters, `tally` the counts of finished jobs, `idempotency` and `dedup` the keys,
`policy` the rules. `worker`, `published` and `lead` hold the workers, the tasks that they published and who
leads which duty; `question` holds what operators ask workers; `meta` holds single values, such as the version
of the policies. `pending_entry` holds what was appended to the audit and the events, `entry` what has a
number, `journal` where each of the two ends. `access` holds users, tokens and sessions, `sign_in_attempt`
counts who tried to sign in. The fair order is an index of `tenant_queue`, so a tenant with a
million waiting jobs costs a claim no more than a tenant with one.

**Threads.** A store has two threads of its own, each with one connection. They start with the first verb and
end with `aclose`. The event loop never touches the file.

* The *writer thread* runs all verbs that write, and `peek`, which claims and rolls back. It takes every verb
  that waits, up to 64, runs them in one transaction and commits once. It answers after the commit: an answer
  means durable. If a verb raises, the group is rolled back and runs again with a savepoint per verb, so that
  only that verb fails. After answering it copies the write-ahead log back into the file (`checkpoints.py`).
* The *reader thread* runs all verbs that only read, each group in a snapshot. It waits for nobody and nobody
  waits for it.

Verbs are plain functions of a `Transaction`. They never await, never start threads and touch nothing but
their transaction, which is why the writer may run them twice. `app_transaction.py` runs the same functions in
the application's thread, on its own apsw connection, inside its open transaction.

**Locks.** Between processes there is one lock: SQLite's write lock, taken by `BEGIN IMMEDIATE` at the start
of a group. Whoever holds it is the only writer of the file, so limits, counters and the fair order are exact
without row locks. A busy file is tried again for 5 s (`connection.busy_wait`), then the verb raises
`StoreBusy`. Inside the process there are three short ones: around the start of a thread, the opening of the
file, and the registry of open files.

**One library per file.** POSIX locks belong to a process, not to a file handle: if a second SQLite library in
the process opens and closes the file, all locks of the first are gone and the file may be destroyed.
`file_guard.py` refuses that, refuses to go on after a fork, and notices when the path leads to another file.

**What a transaction covers.** One verb changes all of its rows in one transaction, or none. Most writes are
collected in memory and sent by `Transaction.flush`, after each verb and before a verb reads rows that it may
have written. `settle` with a `claim` inside settles and claims in one commit. `now` is read once, when the
group begins. Entries of the journals are such writes: they are there if and only if the change is. Jobs that
die are collected on the `Transaction`, and `flush` makes one event of those with the same cause.

**What is cached, and why that is safe between processes.** A cache lives on the writer's `Transaction` and is
checked at each `BEGIN IMMEDIATE`, when no other process can write any more.

* Policies: until `meta.policies` changes. Every change of a policy increments it.
* Tenant queues and strands: until `PRAGMA data_version` changes, which SQLite changes when another connection
  has committed. With one writing process they stay until the cache is full; with several, a process
  that follows another reads them again.
* Recent claims, for the fast path of `settle`: they are never trusted alone. The fast path reads fence,
  worker and state of each row again, and takes from memory only what cannot change while a job runs.
* Counters (floors of queues, gates, rates, estimates): for one transaction only. A tenant's rate is in its
  tenant queue.

A rollback empties all caches, because they may hold rows that were not committed. So does every `peek`: jobs
that run at that time are not settled on the fast path. The reader keeps only its policies from snapshot to
snapshot; `app_transaction` starts empty each time.

**Wake-ups.** After a commit the writer sends the queues that got work as a datagram to the Unix sockets of
other processes (`wake.py`). A wake-up is a hint and may be lost: a waiting worker also polls `PRAGMA
data_version` every 250 ms. Truth is only in the file.

**What a crash leaves.** The write-ahead log: SQLite replays complete commits and drops the rest when the file
is next opened. With `synchronous=full` an answered verb survives a power cut; with `normal` it survives a
killed process, and a power cut may take the last commits, but never a part of one. After every commit each
job is in exactly one of `live`, `history` and `dead`. A worker's claims stay in `live` until their lease
expires and `reclaim` takes them; a late settlement is refused by its fence. A socket of a dead process is
removed by the next sender. If the commit itself fails, its outcome is unknown: an enqueue raises
`EnqueueUnknown` and may be repeated under the same ids.
"""
