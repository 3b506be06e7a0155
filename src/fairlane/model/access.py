"""Decide who may do what over HTTP: roles, what extends them, and what a signed-in caller may see.

Knows no password, no store and no request.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias

import msgspec

from fairlane.model.scope import Scope

How: TypeAlias = Literal["session", "token", "basic", "proxy", "application"]
"""How a caller proved who it is."""


class Role(StrEnum):
    """What a user may do; each role may do all that those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    MANAGER = "manager"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Whether this role may do all that another may.

        >>> Role.MANAGER.includes(Role.OPERATOR), Role.VIEWER.includes(Role.OPERATOR)
        (True, False)
        """
        return _ORDER[self] >= _ORDER[other]


_ORDER: Final = {role: rank for rank, role in enumerate(Role)}


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who makes a request. With a `tenant`, everything of other tenants does not exist for it.

    `grants` are names of single actions that it may do beside those of its role. `session` names the session
    that can be ended, without being its secret.
    """

    name: str
    role: Role
    tenant: str | None = None
    grants: frozenset[str] = frozenset()
    how: How = "session"
    session: str | None = None

    def may(self, action: str, least: Role) -> bool:
        """Whether it may do an action that needs at least this role.

        >>> ann = Principal(name="ann", role=Role.VIEWER, grants=frozenset({"jobs.cancel"}))
        >>> ann.may("jobs.cancel", Role.OPERATOR), ann.may("queues.pause", Role.OPERATOR)
        (True, False)
        """
        return self.role.includes(least) or action in self.grants

    @property
    def scope(self) -> Scope:
        """What it sees: one tenant, or all.

        >>> Principal(name="ann", role=Role.ADMIN, tenant="acme").scope
        Scope(tenant='acme')
        """
        return Scope.all() if self.tenant is None else Scope(self.tenant)
