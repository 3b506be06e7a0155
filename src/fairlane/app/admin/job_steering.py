"""The part of `app.jobs` that changes jobs: cancel, run now, edit, condemn, fail, take back, run again.

Every call is scoped (S9): inside a tenant only that tenant's jobs can be changed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import datetime
from logging import getLogger
from typing import Any, Final
from uuid import UUID

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import actor, flag_of, name_of, reason_of, text_of
from fairlane.app.ambient import scope_for
from fairlane.app.client import Client
from fairlane.app.enqueue.call import NO_OPTIONS
from fairlane.app.enqueue.copies import check_copy, copy_of
from fairlane.app.enqueue.edits import Edit, edit_request
from fairlane.app.job import Job
from fairlane.app.task.declaration import with_task_settings
from fairlane.model.errors import JobNotFound, WrongState
from fairlane.model.failure import ErrorClass
from fairlane.model.identifiers import parse_id
from fairlane.model.instants import Duration, Instant, Micros
from fairlane.model.job import JobRecord
from fairlane.model.lifecycle.states import WAITING, CancelReply, State
from fairlane.model.retry.backoff import backoff_for
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import RevokeRequest
from fairlane.store.contract.jobs import FindRequest, RunNowRequest, StopRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, Request

_log: Final = getLogger("fairlane")


class JobSteering:
    """Changes of single jobs. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def cancel(
        self, *ids: UUID | str, reason: str = "", descendants: bool = False
    ) -> Mapping[UUID, CancelReply]:
        """Cancel waiting jobs and ask running ones to stop; the reply leaves out ids that were not found.

        With `descendants`, also the children of these jobs, their children, and so on. Danger: a job that is
        enqueued after its parent's children were looked up is not cancelled.
        """
        return self._client.portal.run(self.acancel(*ids, reason=reason, descendants=descendants))

    async def acancel(
        self, *ids: UUID | str, reason: str = "", descendants: bool = False
    ) -> Mapping[UUID, CancelReply]:
        """Cancel waiting jobs and ask running ones to stop; see `cancel`."""
        scope, why = scope_for(None), text_of("reason", reason)
        done = operation("jobs.cancel", note=why)
        replies: dict[UUID, CancelReply] = {}
        ahead = list(dict.fromkeys(parse_id(id) for id in ids))
        while ahead:
            # The parent before its children are looked up: jobs it enqueues until it stops are found, too.
            request = StopRequest(scope=scope, ids=tuple(ahead), reason=why, operation=done)
            replies.update(await self._client.store.jobs.cancel(request))
            children = (
                [child for parent in ahead for child in await self._children(parent, scope)]
                if descendants
                else []
            )
            ahead = [child for child in dict.fromkeys(children) if child not in replies]
        return replies

    async def _children(self, parent: UUID, scope: Scope) -> list[UUID]:
        found: list[UUID] = []
        cursor: str | None = None
        while True:
            request = FindRequest(scope=scope, parent_id=parent, limit=MAX_PAGE_SIZE, cursor=cursor)
            page = await self._client.store.jobs.find(request)
            found += [record.id for record in page.jobs]
            cursor = page.cursor
            if cursor is None:
                return found

    def run_now(self, *ids: UUID | str, note: str = "") -> int:
        """Make delayed jobs ready now; return how many of them were delayed (S53)."""
        return self._client.portal.run(self.arun_now(*ids, note=note))

    async def arun_now(self, *ids: UUID | str, note: str = "") -> int:
        """Make delayed jobs ready now; return how many of them were delayed (S53)."""
        wanted, why = tuple(dict.fromkeys(parse_id(id) for id in ids)), text_of("note", note)
        done = operation("jobs.run_now", note=why)
        request = RunNowRequest(scope=scope_for(None), ids=wanted, operation=done)
        return len(await self._client.store.jobs.run_now(request))

    def edit(
        self,
        id: UUID | str,
        /,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        expires_at: datetime | UnsetType | None = UNSET,
        expires_in: Duration | None = None,
        tags: Iterable[str] | None = None,
        arguments: Mapping[str, Any] | None = None,
        note: str = "",
    ) -> Job[Any]:
        """Change a waiting job, and return it as it is now (S64). What is not given stays as it is.

        - `arguments`: the ones to change, by name, as Python or plain JSON values; the others stay.
        - `run_at` or `delay`: only of a delayed job; a time that has passed makes it ready.
        - `expires_at` or `expires_in`: an `expires_at` of None removes the expiry. `tags` replaces all tags.
        - `note`: why. It is logged with who did it.

        The values are checked as those of an enqueue are, all of them before anything changes: `InvalidJob`
        lists every bad one. `WrongState` if the job runs or has ended. Of two edits at the same time the
        later one wins.
        """
        return self._client.portal.run(
            self.aedit(
                id,
                priority=priority,
                run_at=run_at,
                delay=delay,
                expires_at=expires_at,
                expires_in=expires_in,
                tags=tags,
                arguments=arguments,
                note=note,
            )
        )

    async def aedit(
        self,
        id: UUID | str,
        /,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        expires_at: datetime | UnsetType | None = UNSET,
        expires_in: Duration | None = None,
        tags: Iterable[str] | None = None,
        arguments: Mapping[str, Any] | None = None,
        note: str = "",
    ) -> Job[Any]:
        """Change a waiting job, and return it as it is now (S64); see `edit`."""
        options = NO_OPTIONS.with_options(
            priority=priority,
            run_at=run_at,
            delay=delay,
            expires_at=expires_at,
            expires_in=expires_in,
            tags=tags,
        )
        given = UNSET if arguments is None else arguments
        edit = Edit(options=options, arguments=given, removes_expiry=expires_at is None)
        wanted, why, scope = parse_id(id), text_of("note", note), scope_for(None)
        if edit.is_empty:
            fields = "priority, run_at, delay, expires_at, expires_in, tags or arguments"
            message = f"nothing to change: give {fields}"
            raise ValueError(message)
        record = await self._client.aget(wanted, scope)
        if record.state not in WAITING:
            raise _not_waiting(record)
        now = await self._now() if edit.is_relative else None
        request = await edit_request(self._client, scope, record, edit, now)
        done = operation("jobs.edit", note=why)
        reply = await self._client.store.jobs.edit(replace(request, operation=done))
        match reply.answer:
            case "not_found":
                raise JobNotFound(wanted)
            case "not_waiting":
                raise _not_waiting(await self._client.aget(wanted, scope))
            case "not_delayed":
                what = "its time has come and cannot be changed"
                todo = "cancel it and enqueue it again with a delay, or pause its task"
                raise WrongState(wanted, State.READY.value, what, todo)
            case "edited":
                _log_change("edited", wanted, why)
        return self._client.show(reply.job or record)

    async def _now(self) -> Instant:
        return (await self._client.store.registry.status(Request(scope=Scope.all()))).now

    def condemn(self, *ids: UUID | str, reason: str) -> frozenset[UUID]:
        """Move waiting jobs to the dead letters, with a reason; return the ids of those that moved (S64).

        Jobs that run or have ended, and ids that are not found, stay as they are.
        """
        return self._client.portal.run(self.acondemn(*ids, reason=reason))

    async def acondemn(self, *ids: UUID | str, reason: str) -> frozenset[UUID]:
        """Move waiting jobs to the dead letters, with a reason; see `condemn`."""
        wanted = tuple(dict.fromkeys(parse_id(id) for id in ids))
        request = StopRequest(
            scope=scope_for(None),
            ids=wanted,
            reason=reason_of(reason),
            who=actor(None),
            operation=operation("jobs.condemn", note=reason),
        )
        return frozenset(await self._client.store.jobs.condemn(request))

    def fail(self, id: UUID | str, /, *, retry: bool, reason: str) -> State:
        """Let a running job fail, and return its state now (S72): one failure is counted, the reason stored.

        With `retry` it is delayed as after any failure of its task, or dead without attempts left; without,
        it is dead at once, and so is a job that waits. The worker stops the handler when it renews its leases
        next, after some seconds. `WrongState` if the job has ended; with `retry`, also if it waits, or if its
        task runs at most once. A cancel that was asked for wins.
        """
        return self._client.portal.run(self.afail(id, retry=retry, reason=reason))

    async def afail(self, id: UUID | str, /, *, retry: bool, reason: str) -> State:
        """Let a running job fail, and return its state now; see `fail`."""
        wanted, why, scope = parse_id(id), reason_of(reason), scope_for(None)
        if not flag_of("retry", retry):
            return await self._revoke(RevokeRequest(scope=scope, ids=(wanted,), how="dead", reason=why))
        delay = self._retry_delay(await self._client.aget(wanted, scope))
        request = RevokeRequest(scope=scope, ids=(wanted,), how="retry", delay=delay, reason=why)
        return await self._revoke(request)

    def _retry_delay(self, record: JobRecord) -> Micros:
        """Return the delay of a retry by the policies that are known here, as a worker's (S26)."""
        settings, declared = self._client.settings, self._client.registry.find(record.task)
        own = None if declared is None else with_task_settings(declared, settings.tasks).retry
        backoff = backoff_for(ErrorClass.RETRYABLE, own, settings.queue(record.queue).retry)
        return backoff.micros(record.failures + 1, random.random())  # noqa: S311 (spreads retries)

    def take_back(self, id: UUID | str, /, *, reason: str) -> State:
        """Make a running job ready again at its old place, and return its state now (S72).

        No failure is counted; the attempt is recorded as returned, with the reason. Danger: another worker
        may start the job while the handler still runs, for the seconds until its worker renews its leases.
        `WrongState` if the job does not run, or if its task runs at most once. A cancel that was asked for
        wins.
        """
        return self._client.portal.run(self.atake_back(id, reason=reason))

    async def atake_back(self, id: UUID | str, /, *, reason: str) -> State:
        """Make a running job ready again at its old place, and return its state now; see `take_back`."""
        wanted, why = parse_id(id), reason_of(reason)
        return await self._revoke(
            RevokeRequest(scope=scope_for(None), ids=(wanted,), how="return", reason=why)
        )

    async def _revoke(self, request: RevokeRequest) -> State:
        """End the claim of one job; raise why not, if it stays as it is."""
        (id,) = request.ids
        verb = "jobs.take_back" if request.how == "return" else "jobs.fail"
        request = replace(
            request,
            who=actor(None),
            attempts_kept=self._client.settings.retention.attempts,
            operation=operation(verb, note=request.reason),
        )
        reply = await self._client.store.claims.revoke(request)
        if not reply.jobs:
            raise JobNotFound(id)
        (revoked,) = reply.jobs
        match revoked.answer:
            case "revoked":
                _log_change("taken back" if request.how == "return" else "failed", id, request.reason)
                return revoked.state
            case "at_most_once":
                what, todo = "its task runs at most once", "let it run, or fail it with retry=False"
            case "not_running" if revoked.state not in WAITING:
                what, todo = "it has ended", "enqueue a new job, or run it again"
            case "not_running" if request.how == "retry":
                what, todo = "only a running job can be tried again", "wait, or fail it with retry=False"
            case "not_running":
                what, todo = "only a running job can be taken back", "wait until it runs"
        raise WrongState(id, revoked.state.value, what, todo)

    def again(self, id: UUID | str, /, *, created_by: str | None = None, note: str = "") -> Job[Any]:
        """Enqueue a copy of a succeeded or cancelled job, and return the new job (S53).

        The arguments are copied byte for byte, in their version; queue, priority, attempts, timeout, tags,
        metadata, de-duplication key and correlation id are kept, and the old job is the parent. `created_by`
        is kept as well unless another is given. The new job has no idempotency key and no expiry, and may
        start at once. Closed queues and limits hold for it. `WrongState` if the job is not finished, or dead.
        """
        return self._client.portal.run(self.aagain(id, created_by=created_by, note=note))

    async def aagain(self, id: UUID | str, /, *, created_by: str | None = None, note: str = "") -> Job[Any]:
        """Enqueue a copy of a succeeded or cancelled job, and return the new job; see `again`."""
        wanted, why, scope = parse_id(id), text_of("note", note), scope_for(None)
        creator = None if created_by is None else name_of("created_by", created_by)
        record = await self._client.aget(wanted, scope)
        if record.state not in {State.SUCCEEDED, State.CANCELLED}:
            raise _not_again(record)
        check_copy(record)
        copy = replace(copy_of(record, self._client.next_id()), created_by=creator or record.created_by)
        done = operation("jobs.again", note=why)
        (job,) = await self._client.asend((copy,), done)
        if job.created:  # else a job with the same de-duplication key answered
            _log_change("enqueued again", wanted, why)
        return job


def _not_waiting(record: JobRecord) -> WrongState:
    if record.state is State.RUNNING:
        todo = "cancel it, or wait until it is delayed for a retry"
    else:
        todo = "enqueue a new job"
    return WrongState(record.id, record.state.value, "only a waiting job can be changed", todo)


def _not_again(record: JobRecord) -> WrongState:
    if record.state is State.DEAD:
        what, todo = "a dead job is run again from its dead letter", "use app.dead.reprocess(id)"
    else:
        what = "only a succeeded or cancelled job can be copied"
        todo = "wait until it has ended, or cancel it"
    return WrongState(record.id, record.state.value, what, todo)


def _log_change(verb: str, id: UUID, note: str) -> None:
    who = actor(None)
    facts = {"event": "job_steered", "verb": verb, "job": str(id), "who": who, "note": note}
    _log.info("job %s was %s by %s%s", id, verb, who, f": {note}" if note else "", extra=facts)
