"""`app.gates`: the limit, rate and use of each gate, and run-time overrides of its limit and rate (S43).

All tenants share the gates, so from inside a tenant they can be neither read nor changed (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from fairlane.app.admin.controls import list_all
from fairlane.app.admin.rates import RateView, rate_views
from fairlane.app.admin.shared_limits import LimitControls, SharedLimits
from fairlane.app.admin.validation import count_of, rate_of
from fairlane.app.admin.views import Overridden, declared_values, override_view
from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.model.policy.limits import Rate
from fairlane.model.policy.overrides import GateRules, PolicyChange, Subject, SubjectKind
from fairlane.store.contract.policies import PolicyView
from fairlane.store.contract.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """A gate at one instant. `limit` and `rate` are the effective values, `used` counts the claims in it.

    `declared` holds the values given by code or file, None until a worker has written them. `override` holds
    those set at run time.
    """

    name: str
    limit: int | None
    rate: Rate | None
    used: int
    declared: Mapping[str, Any] | None
    override: Overridden | None

    @property
    def free(self) -> int | None:
        """How many more claims fit; 0 also if the limit was lowered below `used`, None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.used)


class Gates(SharedLimits[GateView]):
    """The gates of an application. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, _GateControls(client))

    def set(
        self,
        name: str,
        *,
        limit: int | UnsetType | None = UNSET,
        rate: Rate | UnsetType | None = UNSET,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> GateView:
        """Override a gate's declared limit or rate; None removes it, and a limit of 0 closes the gate.

        The override is merged with what was set before, survives deploys, and ends with `reset` or at
        `until`. All values set for a gate have the same end: ValueError if `until` differs. Lowering a limit
        interrupts no running job.
        """
        return self._client.portal.run(
            self.aset(name, limit=limit, rate=rate, note=note, until=until, who=who)
        )

    async def aset(
        self,
        name: str,
        *,
        limit: int | UnsetType | None = UNSET,
        rate: Rate | UnsetType | None = UNSET,
        note: str = "",
        until: datetime | None = None,
        who: str | None = None,
    ) -> GateView:
        """Override a gate's declared limit or rate; see `set`."""
        change = PolicyChange(limit=count_of("limit", limit), rate=rate_of(rate))
        return await self._limits.change(name, change, note, until, who)

    def rates(self) -> Sequence[RateView]:
        """Return how much of each shared rate is used: the rates of queues, tasks and gates."""
        return self._client.portal.run(self.arates())

    async def arates(self) -> Sequence[RateView]:
        """Return how much of each shared rate is used: the rates of queues, tasks and gates."""
        scope, store = scope_of_all("gates belong to all tenants"), self._client.store
        rates = {
            view.subject: rate
            for kind in (SubjectKind.QUEUE, SubjectKind.TASK, SubjectKind.GATE)
            for view in await list_all(store, scope, kind)
            if (rate := getattr(view.effective, "rate", None)) is not None
        }
        return await rate_views(store, scope, rates)


class _GateControls(LimitControls[GateView]):
    """The overrides of gates."""

    kind = SubjectKind.GATE

    async def show(self, name: str) -> GateView:
        view = await self._read(name)
        return _gate_view(view, (await self._used(view.subject)).get(name, 0))

    async def show_all(self) -> Sequence[GateView]:
        everything = Subject(SubjectKind.GATE, "*")
        used = await self._used(everything)
        names = [*(gate.name for gate in self._client.settings.gates), *used]
        views = await list_all(self._client.store, self._scope(everything), SubjectKind.GATE, names)
        return tuple(_gate_view(view, used.get(view.subject.name, 0)) for view in views)

    async def _used(self, subject: Subject) -> dict[str, int]:
        books = await self._client.store.upkeep.gates(Request(scope=self._scope(subject)))
        return {book.gate: book.used for book in books}


def _gate_view(view: PolicyView, used: int) -> GateView:
    rules = view.effective if isinstance(view.effective, GateRules) else GateRules()
    return GateView(
        name=view.subject.name,
        limit=rules.limit,
        rate=rules.rate,
        used=used,
        declared=declared_values(view.declared),
        override=override_view(view.override),
    )
