"""The scope of a call: whose jobs it may see and change (S9). Every request to a store has one."""

from __future__ import annotations

from typing import Final

import msgspec

SYSTEM: Final = "system"
"""The reserved tenant of the application's own work (S8)."""


class Scope(msgspec.Struct, frozen=True):
    """One tenant, or all of them. There is no default.

    >>> Scope("acme").covers("acme"), Scope("acme").covers("globex"), Scope.all().covers("globex")
    (True, False, True)
    """

    tenant: str | None

    @classmethod
    def all(cls) -> Scope:
        """Return the scope of all tenants: for workers, duties and operators, never for a handler."""
        return _ALL

    def covers(self, tenant: str) -> bool:
        """Whether jobs of this tenant exist for the caller."""
        return self.tenant is None or self.tenant == tenant


_ALL: Final = Scope(None)
