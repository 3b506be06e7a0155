"""On whose behalf the running code acts: the ambient tenant, and inside a handler its job (S9, S10).

Kept in context variables, so that each thread, asyncio task and request has its own. Asks no store.
In a worker process nobody acts without a tenant: code that belongs to none is refused, unless it says why.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from logging import getLogger
from typing import Any, Final

import msgspec

from fairlane.app.job import Job
from fairlane.model.errors import InsideTenant, OutsideTenant, TenantMismatch
from fairlane.model.names import invalid_name, tenant_hint, text_hint
from fairlane.model.scope import SYSTEM, Scope

_log: Final = getLogger("fairlane")


class Ambient(msgspec.Struct, frozen=True):
    """A tenant, what shows the running job if there is one, and whether it may act for any tenant (S8)."""

    tenant: str
    show: Callable[[], Job[Any]] | None = None
    is_wide: bool = False

    @property
    def job(self) -> Job[Any] | None:
        """The running job; None outside of a handler."""
        return None if self.show is None else self.show()

    def allow(self, tenant: str) -> None:
        """Raise `TenantMismatch` unless this tenant may be named here."""
        if tenant != self.tenant and not self.is_wide:
            raise TenantMismatch(tenant, self.tenant)


_ambient: Final[ContextVar[Ambient | None]] = ContextVar("fairlane_ambient", default=None)
_walls: Final[list[object]] = []
"""Whoever forbids, in this process, to act without a tenant."""

_has_raised_walls: Final[ContextVar[bool]] = ContextVar("fairlane_has_raised_walls", default=False)
"""Whether the running context is the one that raised the walls, or a part of it: the worker's own."""


@contextmanager
def walled() -> Generator[None]:
    """Refuse, in this process and for a while, every call that comes from no tenant (S9)."""
    mark = object()
    _walls.append(mark)
    before = _has_raised_walls.set(True)
    try:
        yield
    finally:
        _has_raised_walls.reset(before)
        _walls.remove(mark)


def current() -> Ambient | None:
    """Give what surrounds the caller; None outside of any tenant, `OutsideTenant` where that is refused."""
    ambient = _ambient.get()
    if ambient is None and _walls:
        raise OutsideTenant
    return ambient


def enter(ambient: Ambient) -> None:
    """Act on behalf of a tenant until the end of the running context, which is a handler's own."""
    _ambient.set(ambient)


def current_tenant() -> str:
    """Name the tenant that this code acts for; LookupError outside a handler or `with app.tenant(...)`."""
    ambient = _ambient.get()
    if ambient is None:
        message = "no tenant here: this is neither inside a handler nor inside `with app.tenant(...)`"
        raise LookupError(message)
    return ambient.tenant


def current_job() -> Job[Any]:
    """Give the job whose handler is running; LookupError outside a handler."""
    ambient = _ambient.get()
    if ambient is None or ambient.job is None:
        message = "no job here: this is not inside a handler"
        raise LookupError(message)
    return ambient.job


@contextmanager
def inside(ambient: Ambient) -> Generator[None]:
    """Act on behalf of a tenant for a while; what was before comes back, whatever happens."""
    before = _ambient.set(ambient)
    try:
        yield
    finally:
        _ambient.reset(before)


@contextmanager
def as_tenant(name: str) -> Generator[None]:
    """Act for one tenant; inside another one that is refused, since it would leave a tenant's walls."""
    hint = tenant_hint(name)
    if hint is not None:
        raise invalid_name("tenant", name, hint)
    around = current()
    if around is not None:
        around.allow(name)
    if around is None:
        around = Ambient(name)
    elif around.tenant != name:
        around = Ambient(name, around.show)
    # Inside the same tenant nothing changes: a handler keeps its job and what it may do.
    with inside(around):
        yield


@contextmanager
def as_system(reason: str) -> Generator[None]:
    """Act for all tenants; the only widening there is, and it is logged with its reason (S9)."""
    hint = text_hint(reason)
    if hint is not None:
        message = f"as_system(reason=...) is no reason that can be kept; {hint}"
        raise ValueError(message)
    if not reason.strip():
        message = "as_system(reason=...) needs a reason: it is kept for those who ask later"
        raise ValueError(message)
    around = _ambient.get()
    job = None if around is None else around.job
    about = {"reason": reason, "tenant": around and around.tenant, "job": job and str(job.id)}
    _log.warning("acting for all tenants: %s", reason, extra={"event": "as_system", **about})
    show = None if around is None else around.show
    with inside(Ambient(SYSTEM, show, is_wide=True)):
        yield


@contextmanager
def for_all() -> Generator[None]:
    """Act for all tenants: for parts of Fairlane itself that were allowed to, in threads of their own."""
    with inside(Ambient(SYSTEM, is_wide=True)):
        yield


def scope_for(tenant: str | None) -> Scope:
    """Give the narrowest scope for a call that names this tenant, or none (S9).

    `TenantMismatch` if the call comes from inside another tenant; the store is then not asked.
    """
    ambient = current()
    if ambient is None:
        return Scope.all() if tenant is None else Scope(tenant)
    if tenant is not None:
        ambient.allow(tenant)
        return Scope(tenant)
    return Scope.all() if ambient.is_wide else Scope(ambient.tenant)


def refuse_inside(what: str) -> None:
    """Raise `InsideTenant` if the caller acts for one tenant: this is not that tenant's to do (S9)."""
    ambient = current()
    if ambient is not None and not ambient.is_wide:
        raise InsideTenant(what, ambient.tenant)


def refuse_in_handler(what: str) -> None:
    """Raise if the caller is a tenant's handler, or code in a worker that comes from no tenant (S9).

    For what a worker's own code does, which acts for no tenant and has raised the walls itself.
    """
    ambient = _ambient.get()
    if ambient is None:
        if _walls and not _has_raised_walls.get():
            raise OutsideTenant
    elif ambient.show is not None and not ambient.is_wide:
        raise InsideTenant(what, ambient.tenant)


def scope_of_all(what: str) -> Scope:
    """Return the scope of all tenants for what concerns them all; `InsideTenant` from inside one (S9)."""
    refuse_inside(what)
    return Scope.all()
