"""The contract that every store fulfils, one file per facet. Verbs take and return batches. Names no store.

A verb is one atomic step unless its docstring says otherwise: it happens completely or not at all, and
concurrent verbs answer as if one had come first. Every stored instant is computed inside the verb from the
store's own clock (S1). Requests carry durations or absolute instants, never "now".

Every request carries a `Scope`. Under the scope of one tenant, jobs of other tenants do not exist: they are
not found, not counted and not changed, and their ids answer exactly like ids that were never used (S9).
Naming another tenant outright (an enqueue, a policy) raises `TenantMismatch`.

A verb that cannot reach its store raises `StoreUnavailable` or `StoreBusy`, whose `retry_safe` is true. An
enqueue whose outcome is unknown raises `EnqueueUnknown`. Every other outcome is part of the reply.

To write a store: implement the thirteen facets, open it through `fairlane.store.opening`, and run the suite
in `tests/contract/` against it. The rules are in `docs/reference/semantics.md`.
"""

from __future__ import annotations

from typing import Final, Protocol

from fairlane.store.contract.access import AccessFacet
from fairlane.store.contract.breakers import BreakersFacet
from fairlane.store.contract.budgets import BudgetsFacet
from fairlane.store.contract.claims import ClaimsFacet
from fairlane.store.contract.dead import DeadLettersFacet
from fairlane.store.contract.history import HistoryFacet
from fairlane.store.contract.jobs import JobsFacet
from fairlane.store.contract.journal import JournalFacet
from fairlane.store.contract.mailbox import MailboxFacet
from fairlane.store.contract.policies import PoliciesFacet
from fairlane.store.contract.registry import RegistryFacet
from fairlane.store.contract.schedules import SchedulesFacet
from fairlane.store.contract.upkeep import UpkeepFacet

__all__ = ["FACETS", "Store"]


class Store(Protocol):
    """The jobs, policies and workers of one installation, in thirteen facets."""

    @property
    def jobs(self) -> JobsFacet:
        """Jobs as callers and operators see them."""

    @property
    def claims(self) -> ClaimsFacet:
        """Jobs as workers and duties move them."""

    @property
    def policies(self) -> PoliciesFacet:
        """What is allowed: rules, overrides, pauses."""

    @property
    def budgets(self) -> BudgetsFacet:
        """What was spent of each budget, and by whom."""

    @property
    def registry(self) -> RegistryFacet:
        """Workers, published tasks, the leader, wake-ups."""

    @property
    def mailbox(self) -> MailboxFacet:
        """Questions to workers, and their answers."""

    @property
    def dead(self) -> DeadLettersFacet:
        """Dead letters, read and reviewed."""

    @property
    def journal(self) -> JournalFacet:
        """What operators did, and what happened."""

    @property
    def access(self) -> AccessFacet:
        """Who may sign in, and who has."""

    @property
    def breakers(self) -> BreakersFacet:
        """Circuit breakers around what jobs call."""

    @property
    def schedules(self) -> SchedulesFacet:
        """What makes jobs by itself, and when it has."""

    @property
    def history(self) -> HistoryFacet:
        """Finished jobs on their way into an archive, and back."""

    @property
    def upkeep(self) -> UpkeepFacet:
        """The store itself: schema, retention, counters."""


FACETS: Final = tuple(name for name, value in vars(Store).items() if isinstance(value, property))
"""The names of the facets, in the order above."""
