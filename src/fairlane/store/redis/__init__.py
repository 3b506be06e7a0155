"""The Redis and Valkey store.

Who owns what
-------------

`store.py` joins twelve facets over one `RedisClient`. A facet is a folder (`jobs`, `claims`, `policies`,
`dead`, `upkeep`) or a file (`registry.py`, `mailbox.py`, `journal.py`, `access.py`, `budgets.py`,
`history.py`, `schedules.py`). In a folder the class is in `facet.py`, each larger verb in a file of its own
name. `client.py` runs scripts on the server, wherever it is now; `connection.py` has the pools, `pipeline.py`
the exchange over one connection, `location.py` the address, `errors.py` the translation of errors. `records/`
encodes and decodes jobs, dead letters and entries of the journals. `scripts/` has the Lua files that verbs
run, under the same folders; `scripts/lib` is what they share. Verbs that Python decides have no script of
their own: they read with `jobs/page` or `jobs/get` and write with `jobs/update`. `script_loader.py` puts a
script together.

A script changes a job, its tenant queue, its keys, gates and counters together. Python decides in two ways.
Hot verbs (enqueue, claim, renew, settle) decide in the script, by values Python has worked out before:
settlements in all their variants, policies as plain numbers. Rare verbs (cancel, edit, reclaim, expire,
purge, forget, prune, review, every change of a policy) read first, let the pure model decide, and write under
the condition that nothing has changed (`records/stored_jobs.py`); otherwise they read again.

One script at a time
--------------------

The server runs one script at a time, and no other client in between. That is the only lock there is. So
each script is bounded. It starts or expires at most 40 jobs (`MAX_JOBS_PER_SCRIPT`); a page of settlements
also ends 40. Before it serves a queue, it promotes at most 40 jobs there and unparks at most 50 tenant queues
and strands, members of changed groups included. This is per queue: a claim of ten queues may do ten times
that in one script. While it serves a queue, it unparks waiters of gates whenever nothing else is ready, at
most 500 of a queue in one claim (`MAX_UNPARKED`). A claim parks at most 64 (`MAX_PARKED`). A claim that is
not done hands a continuation to the next script, and is atomic per script.

A batch that is too large for one script is staged in parts, published by one small script, and from then on
every other script refuses with the error BATCH until all of it is in: its client runs `jobs/batch_step` for
whoever sent the batch, then repeats its own call. So nobody sees half a batch, and a sender that dies leaves
nothing half done.

Within a script nothing is written before `commit` (`scripts/lib/base`); reads see the buffered changes. A
script that fails before has changed nothing. A peek is a claim that does not commit.

Keys and hash slots
-------------------

Every key begins with the prefix of the installation in braces, `{fairlane}:`. That is a hash tag: a cluster
keeps all keys of an installation in one slot, on one node, which is what lets a script touch them all.
Several installations, each with a prefix, spread over a cluster. `keys.py` has all names; they are short,
since memory is counted by the byte. Scripts write `$heads` and get the short name when they are loaded.

A job is one field in each of four hashes: head, body, ended attempts, result. The head of a job is a record;
the head of a strand is its first ready job. Sorted sets list jobs by what a verb needs: due time, lease,
expiry, settling, and for reading by enqueue, tenant and correlation id. A tenant queue (one tenant in one
queue) is one record with its virtual time `vt`, the counters of all six states and its strands. The
ready index of a queue is two sorted sets of tenant queues by `vt`: those with nothing running, and the other
ready ones.

A dead letter is a job, a short record that filters compare, and its review if anybody has done anything about
it. A journal is two streams, entries without a number and numbered ones, and a hash with its end.

What is packed by hand, and why
-------------------------------

Heads, tenant queues, strands, new jobs and settlements. Scripts read and write them for each job, and
`struct.unpack` gives all fields in one call. The list of the fields is in Python (`records/head.py`,
`records/layout.py`, `records/job.py`); formats, positions and defaults for Lua are made from it, and
rendered into the scripts as constants: `head[FENCE]` costs what `head[18]` costs, and Lua's limit of 200
local names is not touched. A `vt` is 8 bytes in two words, because a Lua number is exact up to 2^53 only.

To add a field to a job: the model, and one line at the end of `JobBody` with a default; a field that
scripts must know goes into `JobHead` and raises the schema (`upkeep/facet.py`). Bodies of the layout before
are still read.

What is cached
--------------

In the process: the text and hash of each script, and, per event loop, the connections. Nothing of the data:
every call reads the server. A script loads each policy, queue, tenant queue and head once, for as long as
it runs. The server caches the scripts by hash.

Threads and event loops
-----------------------

Each event loop has its own pools; nothing is shared between loops but the address of the server. A pipeline
keeps four scripts in flight: the server works on the next while Python decodes the last. The two concurrent
calls of a lane send their pages one after the other, under an `asyncio.Lock` by queue names.

What a crash leaves
-------------------

- *A client*: staged parts of a batch, which expire after a minute; a published batch, which the next client
  finishes; claims, which are reclaimed when their leases lapse; a continuation, which expires.
- *The server*: whatever its `appendfsync` had not written is gone, scripts as a whole. Claims that were
  lost are issued again with a higher fence, because a fence is never below the server's clock.
- *A failover*: the new primary may lack the last writes. An enqueue waits for `?replicas=` of them, else it
  raises `EnqueueUnknown`, and is safe to repeat under the same ids.
- *A lost script* (restart, failover, SCRIPT FLUSH): the server replies NOSCRIPT, has done nothing, and gets
  the text.
- *A moved slot*: MOVED is followed; ASK is not, since half of the installation is on each node: unavailable
  until then.
- *A full server*: `jobs/enqueue` and parts of a batch are refused; all other scripts run, because they free
  memory.
"""
