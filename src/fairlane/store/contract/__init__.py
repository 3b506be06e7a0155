"""The promise every store makes, one file per facet. Plural verbs, lists in, lists out; no store's name.

A verb is one atomic step unless it says otherwise: it happens whole or not at all, and two verbs at the
same time answer as if one had come first. Every durable instant is computed inside the verb from the
store's own clock (S1); requests carry durations or absolute instants, never "now".

Every request carries a `Scope`. Under the scope of one tenant, what belongs to another tenant does not
exist: it is not found, not counted, not changed, and asking for it by id answers exactly like an id that
was never used (S9). Naming another tenant outright (an enqueue, a policy) raises `TenantMismatch`.

A verb that cannot reach its store raises `StoreUnavailable` or `StoreBusy`, whose `retry_safe` is true; an
enqueue whose fate is unknown raises `EnqueueUnknown`. Anything else a verb has to say, it answers.

To write a store: implement the six facets, open it through `fairlane.store.opening`, and run the suite in
`tests/contract/` against it. The rules are in `docs/reference/semantics.md`.
"""

from __future__ import annotations

from typing import Protocol

from fairlane.store.contract.claims import Claims
from fairlane.store.contract.dead import DeadLetters
from fairlane.store.contract.jobs import Jobs
from fairlane.store.contract.policies import Policies
from fairlane.store.contract.registry import Registry
from fairlane.store.contract.upkeep import Upkeep

__all__ = ["Store"]


class Store(Protocol):
    """One installation's jobs, policies and workers, in six facets."""

    @property
    def jobs(self) -> Jobs:
        """Jobs as callers and operators see them."""

    @property
    def claims(self) -> Claims:
        """Jobs as workers and duties move them."""

    @property
    def policies(self) -> Policies:
        """What is allowed: rules, overrides, pauses."""

    @property
    def registry(self) -> Registry:
        """Who is there: workers, tasks, the leader, wake-ups."""

    @property
    def dead(self) -> DeadLetters:
        """Dead letters, stored and read."""

    @property
    def upkeep(self) -> Upkeep:
        """The store itself: schema, retention, its own books."""
