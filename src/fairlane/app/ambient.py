"""The ambient tenant: on whose behalf the running code acts, and inside a handler its job (S9, S10).

Held in context variables, so each asyncio task and each thread has its own. In a worker process, code that
acts for no tenant is refused unless it uses `as_system`. Asks no store.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from logging import getLogger
from typing import Any, Final

import msgspec

from fairlane.app.job import Job
from fairlane.app.journal_buffer import JournalBuffer
from fairlane.app.refusal_entries import as_system_entry, foreign_tenant
from fairlane.model.errors import InsideTenant, OutsideTenant, TenantMismatch
from fairlane.model.names import invalid_name, tenant_hint, text_hint
from fairlane.model.scope import SYSTEM, Scope

_log: Final = getLogger("fairlane")


class Ambient(msgspec.Struct, frozen=True):
    """A tenant, a function that returns the running job, and whether the code may act for any tenant (S8).

    `journals` is where refusals are noted: that of the application which has set this tenant.
    """

    tenant: str
    show: Callable[[], Job[Any]] | None = None
    spans_tenants: bool = False
    journals: JournalBuffer | None = None

    @property
    def is_handler(self) -> bool:
        """Whether the code runs in a handler."""
        return self.show is not None

    @property
    def job(self) -> Job[Any] | None:
        """The running job; None outside a handler."""
        return None if self.show is None else self.show()

    def allow(self, tenant: str) -> None:
        """Raise `TenantMismatch` unless this tenant may be named here; a refusal is noted for the audit."""
        if tenant == self.tenant or self.spans_tenants:
            return
        if self.journals is not None:
            with suppress(ValueError):  # an actor of the environment that cannot be stored
                for journal, entry in foreign_tenant(self.tenant, self.job, tenant):
                    self.journals.note(journal, entry)
        raise TenantMismatch(tenant, self.tenant)


_ambient: Final[ContextVar[Ambient | None]] = ContextVar("fairlane_ambient", default=None)
_tenant_required_by: Final[list[object]] = []
"""One mark for each worker or trial of this process that forbids acting without a tenant."""

_is_worker_context: Final[ContextVar[bool]] = ContextVar("fairlane_is_worker_context", default=False)
"""Whether the running context is the worker's own, or derived from it: that one needs no tenant."""


@contextmanager
def require_tenant() -> Generator[None]:
    """Refuse every call of this process that acts for no tenant, until the block ends (S9)."""
    mark = object()
    _tenant_required_by.append(mark)
    before = _is_worker_context.set(True)
    try:
        yield
    finally:
        _is_worker_context.reset(before)
        _tenant_required_by.remove(mark)


def current_ambient() -> Ambient | None:
    """Return the caller's ambient tenant; None outside any tenant, `OutsideTenant` where one is required."""
    ambient = _ambient.get()
    if ambient is None and _tenant_required_by:
        raise OutsideTenant
    return ambient


def set_ambient(ambient: Ambient) -> None:
    """Set the ambient tenant of the running context for good: for a handler's own context."""
    _ambient.set(ambient)


def current_tenant() -> str:
    """Return the tenant that this code acts for; LookupError outside a handler and `with app.tenant(...)`."""
    ambient = _ambient.get()
    if ambient is None:
        message = "no tenant here: this code runs neither in a handler nor in `with app.tenant(...)`"
        raise LookupError(message)
    return ambient.tenant


def current_job() -> Job[Any]:
    """Return the job whose handler is running; LookupError outside a handler."""
    ambient = _ambient.get()
    if ambient is None or ambient.job is None:
        message = "no job here: this code does not run in a handler"
        raise LookupError(message)
    return ambient.job


@contextmanager
def acting_as(ambient: Ambient) -> Generator[None]:
    """Set the ambient tenant for a block, and restore the previous one."""
    before = _ambient.set(ambient)
    try:
        yield
    finally:
        _ambient.reset(before)


@contextmanager
def as_tenant(name: str, journals: JournalBuffer | None = None) -> Generator[None]:
    """Act for one tenant; `TenantMismatch` inside another one, since that would break isolation."""
    hint = tenant_hint(name)
    if hint is not None:
        raise invalid_name("tenant", name, hint)
    outer = current_ambient()
    if outer is not None:
        outer.allow(name)
    if outer is None:
        outer = Ambient(name, journals=journals)
    elif outer.tenant != name:
        outer = Ambient(name, outer.show, journals=outer.journals)
    # Inside the same tenant nothing changes: a handler keeps its job and its permissions.
    with acting_as(outer):
        yield


@contextmanager
def as_system(reason: str, journals: JournalBuffer | None = None) -> Generator[None]:
    """Act for all tenants. The only way to widen a scope; logged and audited with its reason (S9, S60)."""
    hint = text_hint(reason)
    if hint is not None:
        message = f"as_system(reason=...) cannot be logged; {hint}"
        raise ValueError(message)
    if not reason.strip():
        message = "as_system(reason=...) needs a reason: it is logged"
        raise ValueError(message)
    outer = _ambient.get()
    job = None if outer is None else outer.job
    about = {"reason": reason, "tenant": outer and outer.tenant, "job": job and str(job.id)}
    _log.warning("acting for all tenants: %s", reason, extra={"event": "as_system", **about})
    show = None if outer is None else outer.show
    journals = journals if outer is None or outer.journals is None else outer.journals
    if journals is not None:
        with suppress(ValueError):  # as in `allow`
            journals.note("audit", as_system_entry(None if outer is None else outer.tenant, job, reason))
    with acting_as(Ambient(SYSTEM, show, spans_tenants=True, journals=journals)):
        yield


@contextmanager
def acting_for_all_tenants() -> Generator[None]:
    """Act for all tenants: for threads of Fairlane itself whose starter was checked before."""
    with acting_as(Ambient(SYSTEM, spans_tenants=True)):
        yield


def scope_for(tenant: str | None) -> Scope:
    """Return the narrowest scope for a call that names this tenant, or none (S9).

    `TenantMismatch` if the caller acts for another tenant, before any store is asked.
    """
    ambient = current_ambient()
    if ambient is None:
        return Scope.all() if tenant is None else Scope(tenant)
    if tenant is not None:
        ambient.allow(tenant)
        return Scope(tenant)
    return Scope.all() if ambient.spans_tenants else Scope(ambient.tenant)


def refuse_inside(what: str) -> None:
    """Raise `InsideTenant` if the caller acts for one tenant: `what` concerns all of them (S9)."""
    ambient = current_ambient()
    if ambient is not None and not ambient.spans_tenants:
        raise InsideTenant(what, ambient.tenant)


def refuse_in_handler(what: str) -> None:
    """Raise if the caller is a tenant's handler, or code without a tenant that runs in a worker (S9).

    The worker's own context is allowed: it acts for no tenant, and set the requirement itself.
    """
    ambient = _ambient.get()
    if ambient is None:
        if _tenant_required_by and not _is_worker_context.get():
            raise OutsideTenant
    elif ambient.show is not None and not ambient.spans_tenants:
        raise InsideTenant(what, ambient.tenant)


def scope_of_all(what: str) -> Scope:
    """Return the scope of all tenants; `InsideTenant` if the caller acts for one (S9)."""
    refuse_inside(what)
    return Scope.all()
