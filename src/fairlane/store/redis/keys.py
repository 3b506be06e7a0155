"""Name every key of an installation. All share one hash tag, so that a cluster keeps them on one node.

A script writes a name as `$heads`; the loader replaces it by the short name. A short name that ends in a
colon is followed by names that callers chose (a queue, a tenant, a task), with a NUL between two: no name
holds one.
"""

from __future__ import annotations

from typing import Final

NAMES: Final = {
    # jobs: hashes by id
    "heads": "h",
    "bodies": "b",
    "attempts": "a",
    "results": "r",
    # jobs: sorted sets of ids
    "all": "all",  # by enqueue
    "by_tenant": "T:",
    "by_correlation": "C:",
    "delayed": "d:",  # of a queue, by due time
    "strand": "s:",  # of (queue, tenant, task), by sort key: ready jobs that are not in the record
    "leases": "l",
    "cancel_asked": "c",  # running jobs whose cancellation was requested
    "expiries": "x",  # of waiting jobs
    "finished": "f:",  # of a state, by settling
    "results_kept": "re",  # by settling
    # queues and tenant queues
    "queues": "q",
    "tenant_queues": "t:",  # hash of a queue, by tenant
    "tenant_queue_names": "qt",  # all of them, ordered by name
    "strands": "sr:",  # of (queue, tenant) with many tasks: hash by task
    "strand_heads": "sh:",  # of the same: open strands by sort key
    "not_running_index": "j:",  # ready tenants of a queue with nothing running, by vt
    "running_index": "i:",  # the other ready tenants
    "parked_until": "w:",  # what time unparks, by instant
    "parked_groups": "p:",  # what one changed policy may free
    "gate_waiters": "g:",  # of (queue, gate)
    "gate_waiter_counts": "gl",
    # counters by name
    "task_jobs": "tn",
    "rate_states": "ar",
    "gate_slots": "gu",
    "estimates": "es",
    # idempotency and de-duplication keys
    "keys": "k",
    "keys_named": "ki",
    "keys_ended": "ke",
    "dedup": "dd",
    "dedup_named": "di",
    # a large batch that is coming in
    "batch": "batch",
    "staged": "st:",  # of (batch, number of the part)
    "continuation": "cy:",  # of one call: what the next script of its claim must know
    # policies
    "rules": "rules",  # as scripts read them
    "policies": "pol",  # as they were set
    "policies_named": "pn",
    # workers
    "workers": "wk",  # their records
    "heartbeats": "wb",
    "workers_tasks": "wt",
    "task_records": "tk",
    "tasks_seen": "te",
    "leads": "ld",
    "meta": "meta",
    "hints": "n:",  # stream of a queue, one entry
    "worker_hints": "nw:",  # stream of a worker, one entry
}
"""What is stored, and under which short name: memory is counted by the byte."""


class KeyNames:
    """The keys of one installation."""

    def __init__(self, prefix: str) -> None:
        """Put the whole prefix into the hash tag."""
        self.base = f"{{{prefix}}}:"

    def __call__(self, name: str, *rest: str) -> str:
        """Return a whole key.

        >>> KeyNames("fairlane")("delayed", "mail")
        '{fairlane}:d:mail'
        """
        return self.base + NAMES[name] + "\0".join(rest)
