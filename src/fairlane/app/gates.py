"""`app.gates`: how many places each gate has and how many are free, and a run-time change of its limit (S43).

Gates belong to all tenants together, so from inside one tenant they cannot be named (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from fairlane.app.client import Client
from fairlane.app.policy_values import count_of, rate_of
from fairlane.app.steering import Steering, list_all
from fairlane.app.views import Overridden, declared_of, override_of
from fairlane.model.layers import Change, GateRules, Kind, Subject
from fairlane.model.limits import Rate
from fairlane.store.contract.policies import PolicyView
from fairlane.store.contract.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """A gate at one instant. `limit` and `rate` are what holds; `used` counts the claims that hold a place.

    `declared` has the values that code or file gave, None if no worker has written any yet; `override` what
    was set above them.
    """

    name: str
    limit: int | None
    rate: Rate | None
    used: int
    declared: Mapping[str, Any] | None
    override: Overridden | None

    @property
    def free(self) -> int | None:
        """Places that nobody holds now; 0 also after the limit was lowered below it. None: no limit."""
        return None if self.limit is None else max(0, self.limit - self.used)


class Gates:
    """The gates of an application. Each method has an async twin with an `a` in front."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._steering = _GateSteering(client)

    def get(self, name: str) -> GateView:
        """Return a gate; one that nobody has named yet has no limit."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> GateView:
        """Return a gate; one that nobody has named yet has no limit."""
        return await self._steering.show(name)

    def list(self) -> Sequence[GateView]:
        """Return all gates by name: those that are declared here, and those that the store knows."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[GateView]:
        """Return all gates by name: those that are declared here, and those that the store knows."""
        return await self._steering.show_all()

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
        """Set a gate's limit or its rate above what is declared; None takes it away, a limit of 0 closes it.

        It lies over what was set before, survives deploys, and ends by `reset` or at `until`. One end holds
        for all that is set of a gate: ValueError for another one. A lowered limit interrupts nothing.
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
        """Set a gate's limit or its rate above what is declared; see `set`."""
        await self._steering.change(
            name, Change(limit=count_of("limit", limit), rate=rate_of(rate)), note, until, who
        )
        return await self.aget(name)

    def reset(self, name: str, *, note: str = "", who: str | None = None) -> GateView:
        """Take off what was set above the declared values."""
        return self._client.portal.run(self.areset(name, note=note, who=who))

    async def areset(self, name: str, *, note: str = "", who: str | None = None) -> GateView:
        """Take off what was set above the declared values."""
        await self._steering.undo(name, note, who)
        return await self.aget(name)


class _GateSteering(Steering):
    """What gates have of steering: values, but neither pause nor close, for which a limit of 0 is there."""

    kind = Kind.GATE

    async def show(self, name: str) -> GateView:
        view = await self._read(name)
        return _gate_of(view, (await self._used(view.subject)).get(name, 0))

    async def show_all(self) -> Sequence[GateView]:
        everything = Subject(Kind.GATE, "*")
        used = await self._used(everything)
        names = [*(gate.name for gate in self._client.settings.gates), *used]
        views = await list_all(self._client.store, self._scope(everything), Kind.GATE, names)
        return tuple(_gate_of(view, used.get(view.subject.name, 0)) for view in views)

    async def change(
        self, name: str, change: Change, note: str, until: datetime | None, who: str | None
    ) -> None:
        await self._set(name, change, note, until, who)

    async def undo(self, name: str, note: str, who: str | None) -> None:
        await self._reset(name, note, who)

    async def _used(self, subject: Subject) -> dict[str, int]:
        books = await self._client.store.upkeep.gates(Request(scope=self._scope(subject)))
        return {book.gate: book.used for book in books}


def _gate_of(view: PolicyView, used: int) -> GateView:
    rules = view.effective if isinstance(view.effective, GateRules) else GateRules()
    return GateView(
        name=view.subject.name,
        limit=rules.limit,
        rate=rules.rate,
        used=used,
        declared=declared_of(view.declared),
        override=override_of(view.override),
    )
