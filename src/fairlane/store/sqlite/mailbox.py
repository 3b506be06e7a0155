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
from fairlane.store.sqlite.query import all_rows, one_row
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.threads import ReaderThread, WriterThread
from fairlane.store.sqlite.transaction import Transaction

_SQL = load("mailbox")


class SqliteMailbox:
    """Questions and answers, in one table."""

    def __init__(self, writer: WriterThread, reader: ReaderThread) -> None:
        """Share the file with the other facets."""
        self._writer = writer
        self._reader = reader

    async def ask(self, request: AskRequest) -> bool:
        id, worker = str(request.id), request.worker

        def add(tx: Transaction) -> bool:
            if one_row(tx.db, _SQL.is_asked, (id,)) is not None:
                return True
            if one_row(tx.db, _SQL.is_registered, (worker,)) is None:
                return False
            tx.db.execute(_SQL.drop_oldest, (worker, MAX_QUESTIONS - 1))
            tx.db.execute(_SQL.ask, (id, worker, request.kind, tx.now, tx.now + request.valid_for))
            tx.append("audit", question_entries(request.operation, worker))
            return True

        return await self._writer.run(add)

    async def unanswered(self, request: UnansweredRequest) -> tuple[Question, ...]:
        def read(tx: Transaction) -> tuple[Question, ...]:
            rows = all_rows(tx.db, _SQL.unanswered, (request.worker, tx.now))
            return tuple(Question(UUID(id), kind, asked_at) for id, kind, asked_at in rows)

        return await self._reader.run(read)

    async def answer(self, request: AnswerRequest) -> bool:
        def store(tx: Transaction) -> bool:
            values = (str(request.id), request.worker, request.text, tx.now)
            return one_row(tx.db, _SQL.answer, values) is not None

        return await self._writer.run(store)

    async def read(self, request: ReadAnswerRequest) -> StoredAnswer | None:
        def find(tx: Transaction) -> StoredAnswer | None:
            row = one_row(tx.db, _SQL.read, (str(request.id),))
            return None if row is None else StoredAnswer(*row)

        return await self._reader.run(find)

    async def clean(self, request: Request) -> int:  # noqa: ARG002 (the contract's shape)
        def remove(tx: Transaction) -> int:
            return len(all_rows(tx.db, _SQL.clean, (tx.now - QUESTIONS_KEPT,)))

        return await self._writer.run(remove)
