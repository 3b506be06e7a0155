"""Name every key of an installation. All begin with one hash tag, so that a cluster keeps them together.

Scripts write a name as `$heads`; it is rendered in when a script is loaded. Names that end in a colon are
followed by what callers chose (a queue, a tenant, a task), which never holds the NUL that separates two.
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
    "strand": "s:",  # ready jobs of (queue, tenant, task) that its record does not have, by sort key
    "leases": "l",
    "asked": "c",  # running jobs that were asked to stop
    "expiries": "x",  # of waiting jobs
    "finished": "f:",  # of a state, by settling
    "results_kept": "re",  # by settling
    # turns
    "queues": "q",
    "turns": "t:",  # of a queue, by tenant
    "strands": "sr:",  # of (queue, tenant) with many tasks, by task
    "strand_heads": "sh:",  # of the same, those that may be served, by sort key
    "queues_tenants": "qt",  # all turns in the order of their names
    "idle": "j:",  # ready turns of a queue with nothing running
    "busy": "i:",  # the other ready turns
    "woken": "w:",  # what is parked until a time
    "groups": "p:",  # what is parked because of one kind of policy
    "gate_line": "g:",  # of (queue, gate)
    "line_lengths": "gl",
    # what is counted by name
    "task_jobs": "tn",
    "arrivals": "ar",
    "gates": "gu",
    "estimates": "es",
    # keys of callers
    "keys": "k",
    "keys_named": "ki",
    "keys_ended": "ke",
    "dedup": "dd",
    "dedup_named": "di",
    # a large batch on its way in
    "batch": "batch",
    "staged": "st:",  # of (batch, number)
    "carry": "cy:",  # of one call: what a claim knows that goes on in its next script
    # policies
    "rules": "rules",  # as scripts read them
    "policies": "pol",  # as they were set
    "policies_named": "pn",
    # who is there
    "workers": "wk",  # their cards
    "beats": "wb",
    "workers_tasks": "wt",
    "cards": "tk",
    "cards_seen": "te",
    "leads": "ld",
    "meta": "meta",
    "hints": "n:",  # streams: one entry, of a queue or
    "worker_hints": "nw:",  # of a worker
}
"""What is kept, and under which short name: memory is counted by the byte."""


class Keys:
    """The keys of one installation."""

    def __init__(self, prefix: str) -> None:
        """Put the whole prefix into the hash tag."""
        self.base = f"{{{prefix}}}:"

    def __call__(self, name: str, *rest: str) -> str:
        """Give a whole key.

        >>> Keys("fairlane")("delayed", "mail")
        '{fairlane}:d:mail'
        """
        return self.base + NAMES[name] + "\0".join(rest)
