"""The client of one application: the only part of it that talks to the store about jobs.

All methods that ask the store are async; blocking callers go through `portal`. What makes a job well-formed
is decided in `enqueue`, and what is admitted in the store.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from enum import Enum
from logging import getLogger
from random import SystemRandom
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from fairlane.app import ambient
from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import text_of
from fairlane.app.config.configuration import Configuration
from fairlane.app.enqueue.call import Call
from fairlane.app.enqueue.job_builder import BuildContext, build_jobs, connection_of, take_batch
from fairlane.app.enqueue.log_warnings import (
    MissingTenantWarning,
    log_default_store,
    log_over_limit,
    log_payload_warnings,
)
from fairlane.app.enqueue.refusals import refusal_error
from fairlane.app.enqueue.unconfirmed import unknown
from fairlane.app.guards.breaker_memory import BreakerMemory
from fairlane.app.job import Job, job_of
from fairlane.app.journal_buffer import JournalBuffer
from fairlane.app.open_stores import OpenStores
from fairlane.app.portal import Portal
from fairlane.app.refusal_entries import queue_full
from fairlane.app.resources import Resources
from fairlane.app.schedules.declarations import ScheduleRegistry
from fairlane.app.settings import Settings
from fairlane.app.task.context import Context
from fairlane.app.task.declaration import TaskRegistry
from fairlane.model.errors import EnqueueUnknown, JobNotFound, StoreError
from fairlane.model.identifiers import IdMaker
from fairlane.model.instants import SECOND, Micros
from fairlane.model.job import JobRecord, NewJob
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle.admission import Refusal, RefusalKind
from fairlane.model.lifecycle.states import CancelReply
from fairlane.model.payload.enums import NO_ENUMS
from fairlane.model.scope import SYSTEM, Scope
from fairlane.runtime.clock import Clock, MachineClock
from fairlane.runtime.loops import start_in_background
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import Enqueued, EnqueueReply, EnqueueRequest, GetRequest, StopRequest
from fairlane.store.opening import StoreClock, open_store

R = TypeVar("R")

TenantContext: TypeAlias = Callable[[Context], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
"""Returns the context manager that the application wraps around every attempt."""

_FIRST_POLL: Final[Micros] = SECOND // 20
_SLOWEST_POLL: Final[Micros] = SECOND
_SEND_WITHIN: Final = 1.0
"""Seconds."""

_log: Final = getLogger("fairlane")


class Client:
    """One application's access to its store. Opens nothing and starts nothing before the first call."""

    def __init__(self, configuration: Configuration, registry: TaskRegistry) -> None:
        self.configuration = configuration
        self.registry = registry
        self.schedule_registry = ScheduleRegistry()
        self.portal = Portal()
        self.clock: Clock = MachineClock()
        self.journals = JournalBuffer(lambda: self.clock.elapsed())  # noqa: PLW0108 (tests give it another clock)
        self._sending: asyncio.Task[None] | None = None
        self.breaker_memory = BreakerMemory(lambda: self.clock.elapsed())  # noqa: PLW0108 (as above)
        self.tenant_context: TenantContext | None = None
        self.resources = Resources()
        self.has_worker = False
        self.has_reported_default_store = False
        self._stores = OpenStores(self._open)
        self._diversion: tuple[str, StoreClock] | None = None
        self._id_makers = _IdMakers()
        self._missing_tenant = MissingTenantWarning()

    def divert(self, url: str | None, clock: StoreClock | None) -> None:
        """Open another store with another clock from now on; None goes back to the configured one."""
        self._diversion = None if url is None or clock is None else (url, clock)
        self.breaker_memory.forget()

    def _open(self) -> Store:
        if self._diversion is not None:
            url, clock = self._diversion
            return open_store(url, clock=clock)
        settings = self.settings
        if settings.is_default_url and not self.has_reported_default_store:
            self.has_reported_default_store = True
            log_default_store(str(settings.url))
        return open_store(str(settings.url))

    @property
    def settings(self) -> Settings:
        """The effective settings; the first access reads the file and the environment."""
        return self.configuration.settings

    @property
    def store(self) -> Store:
        """The store of the running event loop."""
        store = self._stores.here()
        if self.journals.is_due and not self.has_worker and (self._sending is None or self._sending.done()):
            self._sending = start_in_background(self.journals.send(store))
        return store

    @property
    def connection_store(self) -> Store:
        """The store for work on a connection of the application, with or without an event loop."""
        return self._stores.connection_store()

    # ── enqueue ───────────────────────────────────────────────────────────────

    async def aenqueue(
        self,
        calls: Iterable[Call[Any]],
        connection: Any = None,
        *,
        is_batch: bool = True,
        done: Operation | None = None,
    ) -> list[Job[Any]]:
        """Enqueue all calls atomically: each is stored or answered by an existing job, or none is (S12).

        With a connection, given here or as an option of the calls, the jobs are part of its open transaction.
        `is_batch` False makes errors speak of one job instead of item 0. `done` is audited with each new job.
        """
        batch = take_batch(calls)
        jobs = self.new_jobs(batch, connection, is_batch=is_batch)
        if not jobs:
            return []
        if jobs[0].tenant != SYSTEM:
            self._missing_tenant.has_others = True
        request = msgspec.structs.replace(self._request(ambient.scope_for(None), jobs), operation=done)
        connection = connection_of(batch, connection)
        if connection is None:
            reply = await self._send(request, is_batch=is_batch)
            if self._missing_tenant.is_due:
                await self._missing_tenant.check(self.store)
        else:
            reply = await self.connection_store.jobs.enqueue_in(connection, request)
        return self._answered(reply, jobs, is_batch=is_batch)

    async def asend(self, jobs: tuple[NewJob, ...], done: Operation | None) -> list[Job[Any]]:
        """Store jobs that were built from stored ones, of tenants that the caller's scope contains."""
        request = msgspec.structs.replace(self._request(ambient.scope_for(None), jobs), operation=done)
        reply = await self._send(request, is_batch=len(jobs) > 1)
        return self._answered(reply, jobs, is_batch=len(jobs) > 1)

    async def arepeat(self, jobs: tuple[NewJob, ...], *, is_batch: bool) -> list[Job[Any]]:
        """Send jobs again whose enqueue was not confirmed; the current caller's scope applies (S15, S9)."""
        scope, caller = ambient.scope_for(None), ambient.current_ambient()
        if caller is not None:
            for job in jobs:
                caller.allow(job.tenant)
        reply = await self._send_again(self._request(scope, jobs), is_batch=is_batch)
        return self._answered(reply, jobs, is_batch=is_batch)

    async def astore(self, jobs: tuple[NewJob, ...]) -> EnqueueReply:
        """Store jobs that were built earlier, of any tenants, possibly not for the first time (S15).

        Their tenants are not checked against the caller: `InsideTenant` from inside a tenant.
        """
        scope = ambient.scope_of_all("the jobs of an outbox may be any tenant's")
        request = msgspec.structs.replace(self._request(scope, jobs), is_repeated=True)
        reply = await self.store.jobs.enqueue(request)
        log_over_limit(reply.over)
        return reply

    def new_jobs(
        self, calls: Iterable[Call[Any]], connection: Any = None, *, is_batch: bool = True
    ) -> tuple[NewJob, ...]:
        """Build jobs from calls, with ids, or raise everything that is wrong with them. Asks no store."""
        note = self._missing_tenant.note
        context = BuildContext(
            self.settings, self.registry, ambient.current_ambient(), self._next_ids, connection, note
        )
        built = build_jobs(calls, context, is_batch=is_batch)
        log_payload_warnings(built, self.settings)
        return tuple(item.job for item in built)

    def _request(self, scope: Scope, jobs: tuple[NewJob, ...]) -> EnqueueRequest:
        must_be_declared = self.settings.tenancy == "declared"
        return EnqueueRequest(scope=scope, jobs=jobs, must_be_declared=must_be_declared)

    def next_id(self) -> UUID:
        """Return the id of a new job."""
        return self._next_ids(1)[0]

    def _next_ids(self, count: int) -> list[UUID]:
        return self._id_makers.maker.many(self.clock.wall(), count)

    def _answered(self, reply: EnqueueReply, jobs: Sequence[NewJob], *, is_batch: bool) -> list[Job[Any]]:
        if reply.refused:
            self._note_full_queues(reply.refused)
            raise refusal_error(reply.refused, jobs, is_batch=is_batch)
        log_over_limit(reply.over)
        return [job_of(one, self) for one in reply.enqueued]

    def _note_full_queues(self, refused: Sequence[Refusal]) -> None:
        full = [one for one in refused if one.kind is RefusalKind.QUEUE_FULL]
        for queue in dict.fromkeys(one.queue for one in full):
            same = [one for one in full if one.queue == queue]
            entry = queue_full(queue, same[0].waiting, same[0].limit, len(same))
            self.journals.note("events", entry)

    async def _send(self, request: EnqueueRequest, *, is_batch: bool) -> EnqueueReply:
        """Send a request; if its outcome is unknown, send it once more with the same ids."""
        try:
            return await self.store.jobs.enqueue(request)
        except EnqueueUnknown:
            _log.info("an enqueue was not confirmed; sending it again", extra={"event": "enqueue_repeated"})
        return await self._send_again(request, is_batch=is_batch)

    async def _send_again(self, request: EnqueueRequest, *, is_batch: bool) -> EnqueueReply:
        """Send a request again. Without an answer, the outcome of the first one stays unknown."""
        try:
            return await self.store.jobs.enqueue(msgspec.structs.replace(request, is_repeated=True))
        except StoreError as error:
            raise unknown(self, request.jobs, is_batch=is_batch) from error

    # ── jobs ──────────────────────────────────────────────────────────────────

    def show(self, record: JobRecord, *, created: bool = True) -> Job[Any]:
        """Return a snapshot of a stored job."""
        return job_of(Enqueued(record, created), self)

    def argument_enums(self, task: str) -> Mapping[str, type[Enum]]:
        """Return the Enum classes that arguments of this task may hold."""
        known = self.registry.find(task)
        return NO_ENUMS if known is None else known.handler.argument_enums

    def result_enums(self, task: str) -> Mapping[str, type[Enum]]:
        """Return the Enum classes that a result of this task may hold."""
        known = self.registry.find(task)
        return NO_ENUMS if known is None else known.handler.result_enums

    async def aget(self, id: UUID, scope: Scope) -> JobRecord:
        """Return one stored job; `JobNotFound` if this scope does not contain it."""
        found = await self.store.jobs.get(GetRequest(scope=scope, ids=(id,)))
        if id not in found:
            raise JobNotFound(id)
        return found[id]

    async def arefresh(self, job: Job[R]) -> Job[R]:
        """Return a newer snapshot of a job, in the caller's scope."""
        return self.show(await self.aget(job.id, _scope_around(job)), created=job.created)

    async def acancel(self, job: Job[Any], reason: str) -> CancelReply:
        """Cancel one job, or ask it to stop."""
        why = text_of("reason", reason)
        request = StopRequest(
            scope=_scope_around(job),
            ids=(job.id,),
            reason=why,
            operation=operation("jobs.cancel", note=why),
        )
        replies = await self.store.jobs.cancel(request)
        if job.id not in replies:
            raise JobNotFound(job.id)
        return replies[job.id]

    async def afinished(self, job: Job[R], at_most: Micros | None) -> Job[R]:
        """Poll a job until it has ended: after 50 ms at first, then less often, down to once a second."""
        _warn_in_handler(job)
        started_at, pause = self.clock.elapsed(), _FIRST_POLL
        while True:
            newer = await self.arefresh(job)
            if newer.is_finished:
                return newer
            left = None if at_most is None else at_most - (self.clock.elapsed() - started_at)
            if left is not None and left <= 0:
                message = f"job {job.id} has not ended in time; it is {newer.state.value}"
                raise TimeoutError(message)
            await self.clock.wait(pause if left is None else min(pause, left))
            pause = min(2 * pause, _SLOWEST_POLL)

    async def asend_journals(self) -> None:
        """Append to the journals what is due, for a process whose calls do not; best effort, bounded."""
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(_SEND_WITHIN):
                await self.journals.send(self._stores.here())

    # ── end ───────────────────────────────────────────────────────────────────

    @property
    def is_open_here(self) -> bool:
        """Whether this event loop has an open store."""
        return self._stores.is_open_here

    async def aclose_here(self) -> None:
        """Close the store of this event loop."""
        try:
            if self._stores.is_open_here:
                sending = self._sending
                if sending is not None and sending.get_loop() is asyncio.get_running_loop():
                    await asyncio.wait([sending])
                if not self.journals.is_empty:
                    await self.journals.send(self._stores.here(), is_last=True)
        finally:
            await self._stores.aclose()

    async def aclose(self) -> None:
        """Close the stores of this event loop and of blocking callers."""
        self._refuse_at_work()
        self.breaker_memory.forget()
        await self.aclose_here()
        if self.portal.is_open:
            await asyncio.wrap_future(self.portal.submit(self.aclose_here()))
            self.portal.close()

    def close(self) -> None:
        """Close the store of blocking callers; an event loop closes its own with `aclose`."""
        self._refuse_at_work()
        self.breaker_memory.forget()
        if self.portal.is_open:
            self.portal.run(self.aclose_here())
            self.portal.close()

    def _refuse_at_work(self) -> None:
        """Keep a handler from closing the store with which its worker renews all leases."""
        if self.has_worker:
            message = "a worker uses this application; it closes the store when it stops"
            raise RuntimeError(message)


class _IdMakers(threading.local):
    """One id generator per thread: they are not thread-safe, and a fork cannot inherit a lock."""

    def __init__(self) -> None:
        self.maker = IdMaker(SystemRandom().getrandbits)


def _scope_around(job: Job[Any]) -> Scope:
    """Return the scope of a job's own tenant; inside a tenant, that tenant's, where others are invisible."""
    caller = ambient.current_ambient()
    return Scope(job.tenant if caller is None or caller.spans_tenants else caller.tenant)


def _warn_in_handler(job: Job[Any]) -> None:
    caller = ambient.current_ambient()
    if caller is not None and caller.job is not None:
        message = (
            f"job {caller.job.id} waits for job {job.id} and occupies a slot meanwhile; "
            "handlers that wait for other jobs can deadlock the worker"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
