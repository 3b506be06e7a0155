"""The mailbox: operators ask a worker something, from any machine, and the worker answers (S70)."""

from __future__ import annotations

from typing import Final, Protocol
from uuid import UUID

import msgspec

from fairlane.model.instants import HOUR, Instant, Micros
from fairlane.store.contract.request import OperatorRequest, Request

MAX_QUESTIONS: Final = 8
"""How many questions to one worker are kept, answered or not."""

MAX_ANSWER_SIZE: Final = 256 * 1024
"""The longest answer, in bytes."""

QUESTIONS_KEPT: Final[Micros] = HOUR
"""How long a question and its answer are kept."""


class AskRequest(OperatorRequest, frozen=True, kw_only=True):
    """Ask a worker something; it may answer within `valid_for`. The caller chooses the id."""

    id: UUID
    worker: str
    kind: str
    valid_for: Micros


class UnansweredRequest(Request, frozen=True, kw_only=True):
    """Ask for the questions to a worker."""

    worker: str


class Question(msgspec.Struct, frozen=True):
    """A question to a worker. A worker that does not know the kind says so in its answer."""

    id: UUID
    kind: str
    asked_at: Instant


class AnswerRequest(Request, frozen=True, kw_only=True):
    """Answer a question; ValueError if the text is longer than `MAX_ANSWER_SIZE`."""

    id: UUID
    worker: str
    text: bytes

    def __post_init__(self) -> None:
        if len(self.text) > MAX_ANSWER_SIZE:
            message = f"an answer of {len(self.text)} bytes is too long; cut it to {MAX_ANSWER_SIZE}"
            raise ValueError(message)


class ReadAnswerRequest(Request, frozen=True, kw_only=True):
    """Ask for the answer to a question."""

    id: UUID


class StoredAnswer(msgspec.Struct, frozen=True):
    """A question that is kept; `answered_at` and `text` are None until it is answered."""

    asked_at: Instant
    answered_at: Instant | None = None
    text: bytes | None = None


class MailboxFacet(Protocol):
    """Questions to workers and their answers. Nothing here decides what becomes of a job."""

    async def ask(self, request: AskRequest) -> bool:
        """Leave a question for a worker. False: no worker with that id is registered; nothing is stored.

        Of the questions to a worker the newest `MAX_QUESTIONS` are kept, this one included; older ones are
        dropped, answered or not. Repeating an id that is kept changes nothing and returns True.
        """

    async def unanswered(self, request: UnansweredRequest) -> tuple[Question, ...]:
        """Return the questions that the worker may still answer, oldest first. Empty is normal."""

    async def answer(self, request: AnswerRequest) -> bool:
        """Store the answer to a question, once.

        False, and nothing changes: the question is answered already, is another worker's, is no longer valid
        or is not kept.
        """

    async def read(self, request: ReadAnswerRequest) -> StoredAnswer | None:
        """Return a question's answer, if there is one already. None: the question is not kept."""

    async def clean(self, request: Request) -> int:
        """Delete the questions asked `QUESTIONS_KEPT` ago or earlier; return how many."""
