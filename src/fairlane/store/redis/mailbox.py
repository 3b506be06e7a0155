"""The mailbox facet: questions to workers, and their answers (S70)."""

from __future__ import annotations

from uuid import UUID

from fairlane.store.audit_entries import question_entries
from fairlane.store.contract.mailbox import (
    QUESTIONS_KEPT,
    AnswerRequest,
    AskRequest,
    Question,
    ReadAnswerRequest,
    StoredAnswer,
    UnansweredRequest,
)
from fairlane.store.contract.request import Request
from fairlane.store.redis.client import RedisClient
from fairlane.store.redis.records.entries import encode_entries


class RedisMailbox:
    """Questions and answers, in two hashes: who looks for questions reads no answer."""

    def __init__(self, client: RedisClient) -> None:
        """Share the connections with the other facets."""
        self._client = client

    async def ask(self, request: AskRequest) -> bool:
        entries = encode_entries("audit", question_entries(request.operation, request.worker))
        values = (str(request.id), request.worker, request.kind, request.valid_for, entries)
        return bool(await self._client.run("mailbox/ask", *values))

    async def unanswered(self, request: UnansweredRequest) -> tuple[Question, ...]:
        found = await self._client.run("mailbox/unanswered", request.worker)
        return tuple(Question(UUID(id.decode()), kind.decode(), asked_at) for id, kind, asked_at in found)

    async def answer(self, request: AnswerRequest) -> bool:
        values = (str(request.id), request.worker, request.text)
        return bool(await self._client.run("mailbox/answer", *values))

    async def read(self, request: ReadAnswerRequest) -> StoredAnswer | None:
        found = await self._client.run("mailbox/read", str(request.id))
        if not found:
            return None
        asked_at, answered_at, text = found
        return StoredAnswer(asked_at, answered_at or None, text)

    async def clean(self, request: Request) -> int:  # noqa: ARG002 (the contract's shape)
        return int(await self._client.run("mailbox/clean", QUESTIONS_KEPT))
