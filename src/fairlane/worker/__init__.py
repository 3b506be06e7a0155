"""A worker claims jobs, runs their handlers, renews their leases and settles them.

Start reading in `execute`: it takes one attempt from its claim to its settlement, top to bottom. This essay
says what surrounds it: who owns what, in which thread, and what a crash leaves behind. Words such as lane,
slot and fence are in docs/reference/glossary.md; rules such as S31 are in docs/reference/semantics.md.

Where the truth lives
---------------------
In the store, and only there. A job is running because its row says so, with a fence and a lease. Everything
in this package is memory that may vanish at any moment: then the lease expires and another worker reclaims
the job. So the worker never decides that a job is done. It sends a settlement with the claim's fence, and
the store accepts it or answers that it is stale.

Two threads
-----------
The *worker's loop* is the event loop in which `WorkerRuntime.run` was awaited. Async handlers run in it,
and a bad one may block it for minutes. So the worker waits for no server in it; handlers may.

The *portal thread* (`Client.portal`, "fairlane-portal") has an event loop and store connections of its own.
No handler runs in it. All calls to the store are made there: round trips, renewals, heartbeats, duties. So
leases are renewed while a handler blocks the worker's loop. The same thread serves an application's
synchronous calls, such as `task.enqueue()`.

Plain `def` handlers run in a pool of daemon threads (`runtime.thread_pool`), one per running handler. A
thread cannot be ended: a handler that ignores its timeout is abandoned with its thread, and a new one takes
its place.

Handlers of tasks with `isolation="process"`, and all suspects, run in child processes (`children`), one job
at a time in each. The worker's loop speaks with them; a guardian process kills them if the worker is gone.

Who owns what
-------------
=====================================  ================================================  ===================
owner                                  what it owns                                      thread
=====================================  ================================================  ===================
`lane_state.LaneState`                 slots, what waits for one, what to do next        worker's loop
`round_trip.RoundTrip`                 one exchange at a time: settle, claim             loop, then portal
`dispatch.Dispatcher`                  fills slots, hands back; stops for keep-alive     loop, `hold` portal
`execute.Executor`                     one attempt: decode, run, result, settlement      loop, `hold` portal
`settle.Settler`                       the store's answers: log, count, forget           worker's loop
`timeouts.Timeouts`                    soft and hard timeouts; stops handlers            worker's loop
`shutdown.Shutdown`                    draining, the end of each lane and of the worker  worker's loop
`children.children.Children`           child processes and the guardian                  worker's loop
`hints.HintListener`                   the store's wake-up hints, while a lane is idle   loop, then portal
`overload.OverloadMonitor`             lanes with more work than they can do: logs it    loop, then portal
`keepalive.KeepAlive`                  renewals, heartbeats, cancels, the guard, duties  portal thread
`attempts.live_attempts.LiveAttempts`  all attempts that are held                        both
`inspection.inspector.Inspector`       what the worker does now, for operators           portal, dump thread
=====================================  ================================================  ===================

`WorkerRuntime` creates these parts and ends them in order; `command` makes a process of it. `startup` is
what happens before the first claim.

Hand-overs, and why there is no lock
------------------------------------
Loop to portal: `portal.call` runs a coroutine there and awaits its result.

Portal to loop: the portal thread puts claims into `LiveAttempts` (`hold`) the moment the answer is there, so
that their leases are renewed even if the loop is blocked just then. The loop takes them when it runs again.
Lost leases and cancels arrive as callbacks (`call_soon_threadsafe`); the handler's own flag
(`AttemptControl`) is set at once, because a handler in a thread may look at it while the loop is blocked.

Handler thread to loop: ends are appended to a deque, and one callback collects all that have accumulated. A
thread whose handler has ended goes on with what waits for the slot (`Dispatcher.next_in_thread`). It chooses
under the lock of the slots, which the loop holds while it fills them.

Changed by both threads: `LiveAttempts`, `AttemptControl`, `StoreOutage`. A batch of settlements belongs to
the portal thread while its call is in flight. None of these needs a lock:

- `LiveAttempts`: each change is one operation on one dictionary or set, which the interpreter does not
  interrupt, and an attempt that moves is in its new place before it leaves the old one. A reader may see an
  attempt twice, never not at all. `leased_at` of an attempt is written by the portal thread alone.
- `AttemptControl`: its flags are only ever set; of two reasons to stop at once either may stay. A race with
  the handler may lose one report of progress.
- `StoreOutage`: a count that is off by one costs a pause of another length, or a log line.
- The counters that a heartbeat reports are written by the loop and read by the portal thread; a value that is
  a moment old does no harm.

Slots, and what is claimed ahead
--------------------------------
A slot is taken while a handler runs. A claim is held for longer: from its arrival until the store has
answered its settlement, or it is known to be lost. In between it waits for a slot, runs, or is pending. What
waits is bounded (`LookAhead`) and starts in the order claimed. It goes back when it has waited for 100 ms,
when the worker drains, or when a handler blocks the loop; in the last case the portal thread hands it back.
Whichever thread takes an attempt out of the unstarted ones (`LiveAttempts.take_unstarted`) decides what
becomes of it.

Any step may raise, in application code (upcasts, classifiers, retry policies, log handlers) or in ours.
Whatever is raised fails that one attempt (`Executor.fail`). If even that is impossible, the worker ends with
an error, and its leases give the jobs back. Neither a slot nor a claim is ever lost silently.

What a crash leaves behind
--------------------------
Killed at any point, the worker leaves rows in the store; no other state needs a repair.

- Before the claim's answer arrived: jobs that are claimed by a worker that never saw them. Their leases
  expire, and they are reclaimed as suspects.
- Before its handler started, also if it only waited for a slot: the same.
- While a handler ran: the same. Its side effects may be half done; the next attempt has a higher fence.
- After the handler ended, before the settlement arrived: the same, and the job runs once more. A handler
  that must not repeat its work settles in its own transaction (`Context.succeed_in`).
- After the store has settled, before its answer arrived: nothing. If the worker lives, it sends the
  settlement again and hears that it is stale.
- The registry shows the worker until an hour without a heartbeat has passed. The leader lease of the duties
  expires like a job's lease, and another process takes over.

When the store does not answer, handlers go on and settlements stay pending. If a lease was not renewed until
one second before its end (half-way, for leases under 2 s), its handler is asked to stop. It may still run for
10-15 s, beside another worker's attempt: fences are for that.
"""
