"""The mailbox facet: questions to workers, and their answers (S70)."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.audit_entries import question_entries
from fairlane.store.contract.mailbox import (
    MAX_QUESTIONS,
    QUESTIONS_KEPT,
    AnswerRequest,
    AskRequest,
    Question,
    ReadAnswerRequest,
    StoredAnswer,
    UnansweredRequest,
)
from fairlane.store.contract.request import Request
from fairlane.store.postgres.connection import Server
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.statements import load


class PostgresMailbox:
    """Questions and answers, in one table."""

    def __init__(self, server: Server) -> None:
        """Share the server with the other facets."""
        self._server = server
        self._sql = load("mailbox", server.schema)

    async def ask(self, request: AskRequest) -> bool:
        values = (request.id, request.worker, request.kind, request.valid_for, MAX_QUESTIONS)
        async with self._server.transaction() as connection:
            is_kept, is_new = await connection.fetchrow(self._sql.ask, self._server.now(), *values)
            entries = question_entries(request.operation, request.worker) if is_new else ()
            await append_entries(connection, self._server.schema, self._server.now(), "audit", entries)
        return bool(is_kept)

    async def unanswered(self, request: UnansweredRequest) -> tuple[Question, ...]:
        rows = await self._server.fetch(self._sql.unanswered, self._server.now(), request.worker)
        # The driver's own UUID class equals Python's, but no encoder knows it.
        return tuple(Question(UUID(int=id.int), kind, asked_at) for id, kind, asked_at in rows)

    async def answer(self, request: AnswerRequest) -> bool:
        values = (request.id, request.worker, request.text)
        return bool(await self._server.value(self._sql.answer, self._server.now(), *values))

    async def read(self, request: ReadAnswerRequest) -> StoredAnswer | None:
        rows = await self._server.fetch(self._sql.read, request.id)
        return StoredAnswer(*rows[0]) if rows else None

    async def clean(self, request: Request) -> int:  # noqa: ARG002 (the contract's shape)
        return len(await self._server.fetch(self._sql.clean, self._server.now(), QUESTIONS_KEPT))
