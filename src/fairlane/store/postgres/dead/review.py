"""Review dead letters, or delete them: lock, let the model decide, write, tell (S75)."""

from __future__ import annotations

from uuid import UUID

from fairlane.model.instants import Instant
from fairlane.model.journal import facts
from fairlane.model.journal.entries import NewEntry
from fairlane.model.review import ReviewRecord, reviewed
from fairlane.store.audit_entries import delete_entries, review_entries
from fairlane.store.contract.dead import DeadLetter, DeleteRequest, ReviewReply, ReviewRequest
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.dead.letters import locked_letters, write_reviews
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.statements import load


async def review(server: Server, request: ReviewRequest) -> tuple[ReviewReply, ...]:
    """Do something about letters, all in one transaction."""
    schema = server.schema
    async with server.transaction() as connection:
        letters = await locked_letters(connection, schema, request, request.ids)
        now: Instant = await connection.fetchval(load("dead", schema).now, server.now())
        changes = _Changes(request, letters, now)
        replies = tuple(changes.review(id) for id in request.ids)
        await write_reviews(connection, schema, changes.reviews)
        await append_entries(connection, schema, now, "events", changes.events)
        await append_entries(connection, schema, now, "audit", changes.audit)
    return replies


class _Changes:
    """What a request does about letters, one id after the other."""

    def __init__(self, request: ReviewRequest, letters: dict[UUID, DeadLetter], now: Instant) -> None:
        self._request = request
        self._letters = letters
        self._now = now
        self.reviews: dict[UUID, ReviewRecord] = {}
        self.events: list[NewEntry] = []
        self.audit: list[NewEntry] = []

    def review(self, id: UUID) -> ReviewReply:
        """Decide about one letter; a second look at the same one sees the first."""
        letter, request = self._letters.get(id), self._request
        if letter is None:
            return ReviewReply(id, "not_found")
        before = self.reviews.get(id, letter.review)
        after = reviewed(before, request.action, request.who, request.note, self._now)
        if after is None:
            return ReviewReply(id, "not_allowed", before.review)
        self.reviews[id] = after
        self.audit += review_entries(request.operation, id, letter.job.tenant, before, after)
        if after.review != before.review:
            self.events.append(facts.reviewed(letter.job, letter.fingerprint, after.review))
        return ReviewReply(id, "done", after.review)


async def delete(server: Server, request: DeleteRequest) -> tuple[UUID, ...]:
    """Delete letters, all in one transaction."""
    schema = server.schema
    async with server.transaction() as connection:
        letters = await locked_letters(connection, schema, request, request.ids)
        gone = [letters[id] for id in dict.fromkeys(request.ids) if id in letters]
        if not gone:
            return ()
        await connection.fetch(load("dead", schema).delete, list(letters))
        events = [facts.reviewed(letter.job, letter.fingerprint, "deleted") for letter in gone]
        await append_entries(connection, schema, server.now(), "events", events)
        audit = [
            entry
            for one in gone
            for entry in delete_entries(request.operation, one.job.id, one.job.tenant, one.review)
        ]
        await append_entries(connection, schema, server.now(), "audit", audit)
    return tuple(letter.job.id for letter in gone)
