"""The part of `app.dead` that changes one dead letter: acknowledge, note, decide, run again, delete (S75).

Every call is scoped (S9): inside a tenant only that tenant's dead letters can be changed. Who does it and
why is noted in the letter and in the audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fairlane.app.admin.operations import operation
from fairlane.app.admin.validation import actor, text_of
from fairlane.app.ambient import scope_for
from fairlane.app.dead.reading import DeadReading
from fairlane.app.dead.reprocessing import new_run, queue_to_use, reprocess_error, stands, with_arguments
from fairlane.app.dead.views import DeadLetterView
from fairlane.app.job import Job
from fairlane.model.errors import JobNotFound, WrongState
from fairlane.model.identifiers import parse_id
from fairlane.model.review import ReviewAction, ReviewRecord, may_follow
from fairlane.model.scope import Scope
from fairlane.store.contract.dead import DeleteRequest, Reprocessing, ReprocessRequest, ReviewRequest


class DeadDeciding(DeadReading):
    """Decisions about single dead letters. Each method has an async twin whose name starts with `a`."""

    def acknowledge(self, id: UUID | str, /, *, note: str = "") -> DeadLetterView:
        """Note that somebody looks after a dead letter; the first to do so stays. Return the letter."""
        return self._client.portal.run(self.aacknowledge(id, note=note))

    async def aacknowledge(self, id: UUID | str, /, *, note: str = "") -> DeadLetterView:
        """Note that somebody looks after a dead letter; see `acknowledge`."""
        return await self._review(id, "acknowledge", note)

    def note(self, id: UUID | str, text: str, /) -> DeadLetterView:
        """Add a note to a dead letter, whatever was decided about it. Return the letter."""
        return self._client.portal.run(self.anote(id, text))

    async def anote(self, id: UUID | str, text: str, /) -> DeadLetterView:
        """Add a note to a dead letter; see `note`."""
        if not text_of("note", text).strip():
            message = "note is empty; write what others should know"
            raise ValueError(message)
        return await self._review(id, "note", text)

    def resolve(self, id: UUID | str, /, *, note: str = "") -> DeadLetterView:
        """Decide that a dead letter is dealt with: what its job was for was done otherwise. Return it."""
        return self._client.portal.run(self.aresolve(id, note=note))

    async def aresolve(self, id: UUID | str, /, *, note: str = "") -> DeadLetterView:
        """Decide that a dead letter is dealt with; see `resolve`."""
        return await self._review(id, "resolve", note)

    def ignore(self, id: UUID | str, /, *, note: str = "") -> DeadLetterView:
        """Decide that a dead letter does not matter. Return it."""
        return self._client.portal.run(self.aignore(id, note=note))

    async def aignore(self, id: UUID | str, /, *, note: str = "") -> DeadLetterView:
        """Decide that a dead letter does not matter. Return it."""
        return await self._review(id, "ignore", note)

    def discard(self, id: UUID | str, /, *, note: str = "") -> DeadLetterView:
        """Decide for good that a dead letter must not run again; it is kept until its time is over."""
        return self._client.portal.run(self.adiscard(id, note=note))

    async def adiscard(self, id: UUID | str, /, *, note: str = "") -> DeadLetterView:
        """Decide for good that a dead letter must not run again; see `discard`."""
        return await self._review(id, "discard", note)

    async def _review(self, id: UUID | str, action: ReviewAction, note: str) -> DeadLetterView:
        wanted, scope, why = parse_id(id), scope_for(None), text_of("note", note)
        request = ReviewRequest(
            scope=scope,
            ids=(wanted,),
            action=action,
            who=actor(None),
            note=why,
            operation=operation(f"dead.{action}", note=why),
        )
        (reply,) = await self._client.store.dead.review(request)
        if reply.answer == "not_allowed" and reply.review is not None:
            raise stands(wanted, reply.review)
        return self._view(await self._letter(wanted, scope))

    def reprocess(
        self,
        id: UUID | str,
        /,
        *,
        arguments: Mapping[str, Any] | None = None,
        to_queue: str | None = None,
        note: str = "",
    ) -> Job[Any]:
        """Run a dead job again as a new job, and return that (S75).

        The new job has the same arguments byte for byte, and the dead job as its parent; correlation id,
        creator, tags, metadata, priority and de-duplication key are kept. It starts with fresh counters and
        without expiry, and the dead letter learns how it ends. `arguments` replaces those that it names, and
        the result is checked as at an enqueue. `to_queue` is another queue than the dead job's.

        A letter that runs again already returns that job, with `created` False: of two people at the same
        time one makes a job, and both get it. `WrongState` if the letter was discarded or its arguments are
        gone, `Refused` if its queue, tenant or task is closed or another job holds its de-duplication key.
        """
        work = self.areprocess(id, arguments=arguments, to_queue=to_queue, note=note)
        return self._client.portal.run(work)

    async def areprocess(
        self,
        id: UUID | str,
        /,
        *,
        arguments: Mapping[str, Any] | None = None,
        to_queue: str | None = None,
        note: str = "",
    ) -> Job[Any]:
        """Run a dead job again as a new job, and return that; see `reprocess`."""
        wanted, scope, why = parse_id(id), scope_for(None), text_of("note", note)
        letter = await self._letter(wanted, scope)
        if not may_follow(letter.review, "reprocess"):
            return await self._standing(wanted, letter.review, scope)
        item = new_run(self._client, letter, await queue_to_use(self._client, to_queue, scope))
        if arguments is not None:
            item = await with_arguments(self._client, letter, item, arguments)
        done = operation("dead.reprocess", note=why)
        request = ReprocessRequest(scope=scope, items=(item,), who=actor(None), note=why, operation=done)
        return await self._reprocessed(request, item)

    async def _reprocessed(self, request: ReprocessRequest, item: Reprocessing) -> Job[Any]:
        (reply,) = await self._client.store.dead.reprocess(request)
        if reply.answer == "not_found":
            raise JobNotFound(item.id)
        if reply.job is None:
            raise reprocess_error(reply, item)
        return await self._new_job(item.id, reply.job, request.scope, created=reply.answer == "reprocessed")

    async def _standing(self, id: UUID, record: ReviewRecord, scope: Scope) -> Job[Any]:
        """Return the job that runs in place of a letter already, or raise what was decided."""
        if record.new_run is None:
            raise stands(id, record.review)
        return await self._new_job(id, record.new_run.job, scope, created=False)

    async def _new_job(self, id: UUID, job: UUID, scope: Scope, *, created: bool) -> Job[Any]:
        try:
            return self._client.show(await self._client.aget(job, scope), created=created)
        except JobNotFound:
            what = f"job {job} ran in its place and is no longer stored"
            raise WrongState(id, "reprocessed", what, "enqueue a new job") from None

    def delete(self, id: UUID | str, /, *, note: str = "") -> None:
        """Delete a dead letter with its job for good, whatever was decided about it."""
        self._client.portal.run(self.adelete(id, note=note))

    async def adelete(self, id: UUID | str, /, *, note: str = "") -> None:
        """Delete a dead letter with its job for good, whatever was decided about it."""
        wanted, scope, why = parse_id(id), scope_for(None), text_of("note", note)
        done = operation("dead.delete", note=why)
        request = DeleteRequest(scope=scope, ids=(wanted,), operation=done)
        if not await self._client.store.dead.delete(request):
            await self._letter(wanted, scope)
            raise JobNotFound(wanted)
