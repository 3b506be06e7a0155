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
    "rate_states": "ar",
    "gate_slots": "gu",
    "estimates": "es",
    # circuit breakers: hashes by name and tenant
    "breakers": "br",
    "open_breakers": "bo",  # what claims read of those that are not closed
    "breakers_named": "brn",  # all of them, ordered by name
    # budgets
    "budget_periods": "bp",  # when they begin, by budget
    "budget_accounts": "ba:",  # hash of a budget, by tenant
    "budget_tenants": "bn:",  # of a budget: who has an account, ordered by name
    "budget_claims": "bc",  # by id and fence
    "budget_claims_ended": "be",  # not by their workers, by that instant
    "budget_spend": "bs:",  # of (budget, start of the period): hash by spender
    "budget_spend_periods": "bt:",  # of a budget
    # idempotency and de-duplication keys
    "keys": "k",
    "keys_named": "ki",
    "keys_ended": "ke",
    "dedup": "dd",
    "dedup_named": "di",
    # dead letters: hashes by id
    "letters": "dl",  # what filters compare
    "reviews": "dv",  # what people decided; absent as long as nobody did anything
    "letter_counts": "dc",  # of (queue, tenant): how many are not pending
    # dead letters: sorted sets of ids
    "decided": "de",  # resolved, ignored and discarded ones by that decision
    "decided_by_death": "da",  # the same, by time of death
    "new_runs": "dn",  # id of the letter and of the job in its place, until its end is known
    # jobs that are removed and not yet archived
    "archive_batches": "ab",  # when each was closed, by number
    "archived": "av:",  # of a batch: hash by id and tenant
    # journals, by name: streams of entries, and a hash
    "pending_entries": "jp:",  # without a number
    "entries": "je:",  # numbered: the number is the id in the stream
    "journal_ends": "jn:",  # revision, last number, memory of the duty
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
    "duty_reports": "dr",  # of the leads, by their names
    "meta": "meta",
    "questions": "qu",  # to workers
    "answers": "an",
    # access
    "access": "ac",  # records, by kind and key
    "access_named": "acn",  # the same, ordered by name
    "access_ends": "ace",  # of those that end, by that instant
    "sign_in_attempts": "si",  # counts by label
    "sign_in_attempts_end": "sie",
    # schedules
    "schedules": "sc",  # by name
    "schedules_named": "scn",  # the same, ordered by name
    "schedules_next": "scx",  # by the instant at which each must be looked at again
    "schedule_slots": "ss",  # by schedule and instant
    "schedule_slots_named": "ssn",  # the same, ordered
    "schedule_slots_pending": "ssp",  # those for one tenant first, then by their instant
    "schedule_slots_ended": "sse",  # by when they ended
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
