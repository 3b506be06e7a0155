"""One `fairlane worker` or `fairlane up`: a small process that starts others and replaces those that end.

Start reading in `supervisor`: its loop waits for signals, messages and deadlines, and does one step for each
instance. Nothing here imports the application or opens a store, so nothing that a job does can harm it.

**Words.** An *instance* is worker process *i of N*, or the one that does the duties (*scheduler*), or the
one that serves the *web*, whichever operating-system process that is at the moment. It has a *current*
process, for a while also its *successor*, and some that are *leaving*: told to drain, not yet gone. The slots
of each lane are divided among the workers (S47), so a successor has the slots of its predecessor.

**The protocol.** Each process inherits one end of a socket pair, and FAIRLANE_SUPERVISED tells it
which (`control`). Messages are lines of text.

====================  ======================================================================================
from the worker
====================  ======================================================================================
``ready MICROS``      it is registered and claims once it may; how long jobs may go on once it drains
``alive``             once a second: its portal thread runs, whatever handlers do
``replace``           it drains by itself (`max_jobs`, `max_memory`): start its successor now
``claims-ended``      it claims nothing more: no claim is under way, and jobs that came late go back
====================  ======================================================================================

====================  ======================================================================================
to the worker
====================  ======================================================================================
``serve``             claim from now on
``quarantine``        run every handler in a child process for a minute
``drain``             claim nothing more, let jobs finish; without effect when repeated
``interrupt``         the same, because of SIGINT
``stop``              stop jobs now
end of the stream     the supervisor is gone: drain
====================  ======================================================================================

**No gap, no more slots than declared.** Every process starts paused. A
successor gets ready first; only then is its predecessor told to drain, and only when that claims nothing more
does the successor serve. So at each moment one process of an instance claims. While the predecessor drains,
both run jobs.

**What kills worker processes.** A job that ends its process takes the others there
along. After the second crash in a row, of whichever instance, every process is put into quarantine before it
serves, and so are those that serve. So the next job that does it ends its own child, and the worker lives to
tell which it was.

Scheduler and web speak the same protocol: they serve when they are ready, and end when they are told to
drain. The web has no successor, since two processes cannot listen at one address: a rolling restart ends it
and starts the next one.

SIGUSR1 goes on to every worker process that is ready: each logs its stacks.

**What ends a supervisor.** SIGTERM, SIGINT, the end of all bursts, or an error that no
restart corrects: see `endings`. If it is killed, its worker processes read the end of the stream, drain, and
leave by themselves.
"""
