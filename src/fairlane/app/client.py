"""From calls to stored jobs and back: the one part of an application that talks to its store.

Everything here is async; plain callers come in through `portal`. Forms and refusals are decided elsewhere.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from enum import Enum
from logging import getLogger
from random import SystemRandom
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from fairlane.app import ambient
from fairlane.app.asked import text_of
from fairlane.app.call import Call
from fairlane.app.config.configuration import Configuration
from fairlane.app.context import Context
from fairlane.app.declaration import Registry
from fairlane.app.form import About, connection_of, form, taken_from
from fairlane.app.job import Job, job_of
from fairlane.app.opened import OpenStores
from fairlane.app.refusals import error_of
from fairlane.app.remarks import remark, tell_default_place, tell_over_limit
from fairlane.app.repeating import unknown
from fairlane.app.settings import Settings
from fairlane.app.sync import Portal
from fairlane.app.tenantless import Tenantless
from fairlane.model.enums import NO_ENUMS
from fairlane.model.errors import EnqueueUnknown, JobNotFound, StoreError
from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.lifecycle import CancelReply
from fairlane.model.scope import SYSTEM, Scope
from fairlane.runtime.clock import Clock, MachineClock
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import Enqueued, EnqueueReply, EnqueueRequest, GetRequest, StopRequest
from fairlane.store.opening import StoreClock, open_store

R = TypeVar("R")

TenantContext: TypeAlias = Callable[[Context], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
"""Gives what the application wants to surround every attempt with, such as its own tenant settings."""

_FIRST_LOOK: Final[Micros] = SECOND // 20
_LATER_LOOKS: Final[Micros] = SECOND

_log: Final = getLogger("fairlane")


class Client:
    """One application's way to its store. Opens nothing and starts nothing before the first call."""

    def __init__(self, configuration: Configuration, registry: Registry) -> None:
        self.configuration = configuration
        self.registry = registry
        self.portal = Portal()
        self.clock: Clock = MachineClock()
        self.tenant_context: TenantContext | None = None
        self.is_at_work = False
        self.is_place_told = False
        self._stores = OpenStores(self._open)
        self._diversion: tuple[str, StoreClock] | None = None
        self._makers = _Makers()
        self._tenantless = Tenantless()

    def divert(self, url: str | None, clock: StoreClock | None) -> None:
        """Use another store, on a clock of the caller's, from the next opening on; with None the own one."""
        self._diversion = None if url is None or clock is None else (url, clock)

    def _open(self) -> Store:
        if self._diversion is not None:
            url, clock = self._diversion
            return open_store(url, clock=clock)
        settings = self.settings
        if settings.is_default_url and not self.is_place_told:
            self.is_place_told = True
            tell_default_place(str(settings.url))
        return open_store(str(settings.url))

    @property
    def settings(self) -> Settings:
        """What holds for the application; the first look reads its file and the environment."""
        return self.configuration.settings

    @property
    def store(self) -> Store:
        """The store of the running loop."""
        return self._stores.here()

    @property
    def joining(self) -> Store:
        """The store for work on the caller's own connection, in a loop or in none."""
        return self._stores.joining()

    # ── enqueue ───────────────────────────────────────────────────────────────

    async def aenqueue(
        self, calls: Iterable[Call[Any]], connection: Any = None, *, is_batch: bool = True
    ) -> list[Job[Any]]:
        """Enqueue all calls, atomically: either every one is stored or answered for, or none is (S12).

        With a connection, given or named by the calls, that is part of the transaction that is open there,
        whose fate the jobs share. Errors of what is no batch speak of one job.
        """
        taken = taken_from(calls)
        jobs = self.formed(taken, connection, is_batch=is_batch)
        if not jobs:
            return []
        if jobs[0].tenant != SYSTEM:
            self._tenantless.has_others = True
        request = self._request(ambient.scope_for(None), jobs)
        connection = connection_of(taken, connection)
        if connection is None:
            reply = await self._send(request, is_batch=is_batch)
            if self._tenantless.is_due:
                await self._tenantless.look(self.store)
        else:
            reply = await self.joining.jobs.enqueue_in(connection, request)
        return self._answered(reply, jobs, is_batch=is_batch)

    async def arepeat(self, jobs: tuple[NewJob, ...], *, is_batch: bool) -> list[Job[Any]]:
        """Send jobs again whose first sending was not confirmed, on behalf of whoever asks now (S15, S9)."""
        scope, around = ambient.scope_for(None), ambient.current()
        if around is not None:
            for job in jobs:
                around.allow(job.tenant)
        reply = await self._send_again(self._request(scope, jobs), is_batch=is_batch)
        return self._answered(reply, jobs, is_batch=is_batch)

    async def astore(self, jobs: tuple[NewJob, ...]) -> EnqueueReply:
        """Store jobs that were formed before, for any tenants, perhaps not for the first time (S15).

        Whose they are nobody has checked: `InsideTenant` from inside a tenant.
        """
        scope = ambient.scope_of_all("the jobs of an outbox may be any tenant's")
        request = msgspec.structs.replace(self._request(scope, jobs), is_repeated=True)
        reply = await self.store.jobs.enqueue(request)
        tell_over_limit(reply.over)
        return reply

    def formed(
        self, calls: Iterable[Call[Any]], connection: Any = None, *, is_batch: bool = True
    ) -> tuple[NewJob, ...]:
        """Make well-formed jobs of calls, with ids, or raise what is wrong with them. Asks no store."""
        note = self._tenantless.note
        about = About(self.settings, self.registry, ambient.current(), self._next_ids, connection, note)
        formed = form(calls, about, is_batch=is_batch)
        remark(formed, self.settings)
        return tuple(item.job for item in formed)

    def _request(self, scope: Scope, jobs: tuple[NewJob, ...]) -> EnqueueRequest:
        must_be_declared = self.settings.tenancy == "declared"
        return EnqueueRequest(scope=scope, jobs=jobs, must_be_declared=must_be_declared)

    def _next_ids(self, count: int) -> list[UUID]:
        return self._makers.maker.many(self.clock.wall(), count)

    def _answered(self, reply: EnqueueReply, jobs: Sequence[NewJob], *, is_batch: bool) -> list[Job[Any]]:
        if reply.refused:
            raise error_of(reply.refused, jobs, is_batch=is_batch)
        tell_over_limit(reply.over)
        return [job_of(one, self) for one in reply.enqueued]

    async def _send(self, request: EnqueueRequest, *, is_batch: bool) -> EnqueueReply:
        """Ask the store; if it cannot say what became of the request, ask once more under the same ids."""
        try:
            return await self.store.jobs.enqueue(request)
        except EnqueueUnknown:
            _log.info("the fate of an enqueue is unknown, asking again", extra={"event": "enqueue_repeated"})
        return await self._send_again(request, is_batch=is_batch)

    async def _send_again(self, request: EnqueueRequest, *, is_batch: bool) -> EnqueueReply:
        """Ask again; without an answer it stays unknown what became of the first sending, whatever failed."""
        try:
            return await self.store.jobs.enqueue(msgspec.structs.replace(request, is_repeated=True))
        except StoreError as error:
            raise unknown(self, request.jobs, is_batch=is_batch) from error

    # ── jobs ──────────────────────────────────────────────────────────────────

    def show(self, record: JobRecord, *, created: bool = True) -> Job[Any]:
        """Make a snapshot of a stored job."""
        return job_of(Enqueued(record, created), self)

    def argument_enums(self, task: str) -> Mapping[str, type[Enum]]:
        """Return the Enum classes that arguments of this task may hold."""
        known = self.registry.find(task)
        return NO_ENUMS if known is None else known.handler.argument_enums

    def result_enums(self, task: str) -> Mapping[str, type[Enum]]:
        """Give the Enum classes that a result of this task may hold."""
        known = self.registry.find(task)
        return NO_ENUMS if known is None else known.handler.result_enums

    async def aget(self, id: UUID, scope: Scope) -> JobRecord:
        """Give one stored job; `JobNotFound` if it cannot be seen in this scope."""
        found = await self.store.jobs.get(GetRequest(scope=scope, ids=(id,)))
        if id not in found:
            raise JobNotFound(id)
        return found[id]

    async def arefresh(self, job: Job[R]) -> Job[R]:
        """Give a newer snapshot of a job, seen from where the caller stands."""
        return self.show(await self.aget(job.id, _scope_around(job)), created=job.created)

    async def acancel(self, job: Job[Any], reason: str) -> CancelReply:
        """Cancel one job, or ask it to stop."""
        why = text_of("reason", reason)
        request = StopRequest(scope=_scope_around(job), ids=(job.id,), reason=why)
        replies = await self.store.jobs.cancel(request)
        if job.id not in replies:
            raise JobNotFound(job.id)
        return replies[job.id]

    async def afinished(self, job: Job[R], at_most: Micros | None) -> Job[R]:
        """Look at a job until it has ended: soon at first, then once a second."""
        _warn_in_handler(job)
        started_at, pause = self.clock.elapsed(), _FIRST_LOOK
        while True:
            newer = await self.arefresh(job)
            if newer.is_finished:
                return newer
            left = None if at_most is None else at_most - (self.clock.elapsed() - started_at)
            if left is not None and left <= 0:
                message = f"job {job.id} is {newer.state.value}, it has not ended in time"
                raise TimeoutError(message)
            await self.clock.wait(pause if left is None else min(pause, left))
            pause = min(2 * pause, _LATER_LOOKS)

    # ── end ───────────────────────────────────────────────────────────────────

    async def aclose_here(self) -> None:
        """Close what this loop has opened."""
        await self._stores.aclose()

    async def aclose(self) -> None:
        """Close what this loop and what plain callers have opened."""
        self._refuse_at_work()
        await self.aclose_here()
        if self.portal.is_open:
            await asyncio.wrap_future(self.portal.submit(self._stores.aclose()))
            self.portal.close()

    def close(self) -> None:
        """Close what plain callers have opened; a loop closes its own with `aclose`."""
        self._refuse_at_work()
        if self.portal.is_open:
            self.portal.run(self._stores.aclose())
            self.portal.close()

    def _refuse_at_work(self) -> None:
        """Let no handler close what its worker renews all leases with."""
        if self.is_at_work:
            message = "a worker runs on this application; it closes it when it leaves"
            raise RuntimeError(message)


class _Makers(threading.local):
    """One maker of ids a thread: makers are not to be shared, and no fork can inherit one that is held."""

    def __init__(self) -> None:
        self.maker = IdMaker(SystemRandom().getrandbits)


def _scope_around(job: Job[Any]) -> Scope:
    """A job in hand is asked after as its own tenant, but from inside another tenant it is out of sight."""
    around = ambient.current()
    return Scope(job.tenant if around is None or around.is_wide else around.tenant)


def _warn_in_handler(job: Job[Any]) -> None:
    around = ambient.current()
    if around is not None and around.job is not None:
        message = (
            f"job {around.job.id} waits for job {job.id} and holds a slot meanwhile; "
            "handlers that wait for each other's jobs can come to a dead lock"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
