"""The mailbox facet of the oracle."""

from __future__ import annotations

from uuid import UUID

import msgspec

from fairlane.model.instants import Instant
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
from tests.oracle.audit import Audit
from tests.oracle.core import Core


class OracleQuestion(msgspec.Struct):
    """A question as the oracle keeps it."""

    question: Question
    worker: str
    until: Instant
    answer: StoredAnswer


class OracleMailbox:
    """Questions to workers, and their answers."""

    def __init__(self, core: Core) -> None:
        """Share the state with the other facets."""
        self._core = core
        self._kept: dict[UUID, OracleQuestion] = {}

    def _of(self, worker: str) -> list[OracleQuestion]:
        found = [kept for kept in self._kept.values() if kept.worker == worker]
        return sorted(found, key=lambda kept: (kept.question.asked_at, kept.question.id.bytes))

    async def ask(self, request: AskRequest) -> bool:
        if request.id in self._kept:
            return True
        if request.worker not in self._core.books.workers:
            return False
        older = self._of(request.worker)
        for kept in older[: max(0, len(older) - MAX_QUESTIONS + 1)]:
            del self._kept[kept.question.id]
        now = self._core.now()
        question = Question(request.id, request.kind, now)
        until = now + request.valid_for
        self._kept[request.id] = OracleQuestion(question, request.worker, until, StoredAnswer(now))
        Audit(self._core, request.operation).asked(request.worker)
        return True

    async def unanswered(self, request: UnansweredRequest) -> tuple[Question, ...]:
        now = self._core.now()
        return tuple(
            kept.question
            for kept in self._of(request.worker)
            if kept.answer.answered_at is None and kept.until > now
        )

    async def answer(self, request: AnswerRequest) -> bool:
        kept, now = self._kept.get(request.id), self._core.now()
        if (
            kept is None
            or kept.worker != request.worker
            or kept.answer.answered_at is not None
            or kept.until <= now
        ):
            return False
        kept.answer = StoredAnswer(kept.answer.asked_at, now, request.text)
        return True

    async def read(self, request: ReadAnswerRequest) -> StoredAnswer | None:
        kept = self._kept.get(request.id)
        return None if kept is None else kept.answer

    async def clean(self, request: Request) -> int:
        now = self._core.now()
        old = [id for id, kept in self._kept.items() if now - kept.question.asked_at >= QUESTIONS_KEPT]
        for id in old:
            del self._kept[id]
        return len(old)
