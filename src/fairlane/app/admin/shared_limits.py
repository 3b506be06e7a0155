"""What gates and budgets have in common: they are read, and an override of them ends (S43, S54, S59).

Both belong to all tenants. They have no pause and no close: a limit or a ceiling of 0 does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, TypeVar

from fairlane.app.admin.controls import PolicyControls
from fairlane.app.client import Client
from fairlane.model.policy.overrides import PolicyChange

V = TypeVar("V")


class LimitControls(PolicyControls, Generic[V]):
    """The overrides of one kind of limit, and how it is shown."""

    async def show(self, name: str) -> V:
        """Return the view of one."""
        raise NotImplementedError

    async def show_all(self) -> Sequence[V]:
        """Return the views of all, by name."""
        raise NotImplementedError

    async def change(
        self, name: str, change: PolicyChange, note: str, until: datetime | None, who: str | None
    ) -> V:
        """Merge a change into the override, and return the view."""
        await self._set(name, change, note, until, who)
        return await self.show(name)

    async def undo(self, name: str, note: str, who: str | None) -> V:
        """Remove the override, and return the view."""
        await self._reset(name, note, who)
        return await self.show(name)


class SharedLimits(Generic[V]):
    """Limits that all tenants share. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client, controls: LimitControls[V]) -> None:
        self._client = client
        self._limits = controls

    def get(self, name: str) -> V:
        """Return one as it is now; an unknown name has no limit."""
        return self._client.portal.run(self.aget(name))

    async def aget(self, name: str) -> V:
        """Return one as it is now; an unknown name has no limit."""
        return await self._limits.show(name)

    def list(self) -> Sequence[V]:
        """Return all by name: those declared here and those known to the store."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[V]:
        """Return all by name: those declared here and those known to the store."""
        return await self._limits.show_all()

    def reset(self, name: str, *, note: str = "", who: str | None = None) -> V:
        """Remove the override, so that the declared values apply again."""
        return self._client.portal.run(self.areset(name, note=note, who=who))

    async def areset(self, name: str, *, note: str = "", who: str | None = None) -> V:
        """Remove the override, so that the declared values apply again."""
        return await self._limits.undo(name, note, who)
