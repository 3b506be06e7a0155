"""The dead-letter facet: each verb checks its request and runs on the writer or the reader thread."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.contract.dead import (
    DeadCountPage,
    DeadCountRequest,
    DeadGetRequest,
    DeadLetter,
    DeadPage,
    DeadRequest,
    DeadTallyPage,
    DeadTallyRequest,
    DeleteRequest,
    FollowReply,
    FollowRequest,
    ReprocessReply,
    ReprocessRequest,
    ReviewReply,
    ReviewRequest,
    check_dead_ids,
    check_reprocess,
)
from fairlane.store.contract.request import check_counts, check_serves_all
from fairlane.store.sqlite.dead.find import count, find
from fairlane.store.sqlite.dead.follow import FIRST_RUN, follow
from fairlane.store.sqlite.dead.letters import find_letter
from fairlane.store.sqlite.dead.reprocess import reprocess
from fairlane.store.sqlite.dead.review import delete, review
from fairlane.store.sqlite.dead.tally import tally
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction


class SqliteDead:
    """Dead letters, as operators read and review them."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader
        self._followed = FIRST_RUN

    async def get(self, request: DeadGetRequest) -> DeadLetter | None:
        def read(tx: Transaction) -> DeadLetter | None:
            stored = find_letter(tx, request, request.id)
            return None if stored is None else stored.letter

        return await self._reader.run(read)

    async def find(self, request: DeadRequest) -> DeadPage:
        return await self._reader.run(lambda tx: find(tx, request))

    async def count(self, request: DeadCountRequest) -> DeadCountPage:
        check_counts(request.limit)
        return await self._reader.run(lambda tx: count(tx, request))

    async def tally(self, request: DeadTallyRequest) -> DeadTallyPage:
        return await self._reader.run(lambda tx: tally(tx, request))

    async def review(self, request: ReviewRequest) -> tuple[ReviewReply, ...]:
        check_dead_ids(len(request.ids))
        return await self._writer.run(lambda tx: review(tx, request))

    async def reprocess(self, request: ReprocessRequest) -> tuple[ReprocessReply, ...]:
        check_reprocess(request)
        return await self._writer.run(lambda tx: reprocess(tx, request))

    async def delete(self, request: DeleteRequest) -> tuple[UUID, ...]:
        check_dead_ids(len(request.ids))
        return await self._writer.run(lambda tx: delete(tx, request))

    async def follow(self, request: FollowRequest) -> FollowReply:
        check_serves_all(request)
        done = await self._writer.run(lambda tx: follow(tx, request, self._followed))
        self._followed = done.after
        return done.reply
