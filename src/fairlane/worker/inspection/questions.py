"""Answer what operators ask this worker through the store (S70). One pass, in the portal thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

import msgspec

from fairlane.app.admin.worker_status import WorkerAnswer
from fairlane.model.instants import SECOND, Micros
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.mailbox import MAX_ANSWER_SIZE, AnswerRequest, Question, UnansweredRequest
from fairlane.worker import report
from fairlane.worker.inspection.inspector import Inspector

LOOK_EVERY: Final[Micros] = 2 * SECOND
"""How often a worker looks for questions."""

_encode: Final = msgspec.json.Encoder().encode


class ObeysOperators(Protocol):
    """What operators can tell a worker to do. Called in the portal thread."""

    def drain(self) -> None:
        """Stop, and let running jobs finish."""
        ...

    def pause(self) -> None:
        """Claim nothing until `resume`."""
        ...

    def resume(self) -> None:
        """Claim again."""
        ...


def _fitting(answer: WorkerAnswer) -> bytes:
    """Encode an answer; one that is too long loses the younger half of its slots and the end of its text."""
    while len(encoded := _encode(answer)) > MAX_ANSWER_SIZE:
        slots = answer.status.slots[: len(answer.status.slots) // 2]
        status = replace(answer.status, slots=slots)
        answer = replace(answer, status=status, text=answer.text[: len(answer.text) // 2])
    return encoded


class Questions:
    """The questions to one worker."""

    def __init__(
        self, worker: str, store: Callable[[], Store], inspector: Inspector, obeys: ObeysOperators
    ) -> None:
        self._worker = worker
        self._store = store
        self._inspector = inspector
        self._orders: dict[str, Callable[[], None]] = {
            "stop": obeys.drain,
            "pause": obeys.pause,
            "resume": obeys.resume,
        }

    async def look(self) -> Micros:
        """Answer every question; return the pause before the next look."""
        request = UnansweredRequest(scope=Scope.all(), worker=self._worker)
        for question in await self._store().mailbox.unanswered(request):
            report.asked(self._worker, question.kind)
            text = _fitting(await self._answer(question))
            answer = AnswerRequest(scope=Scope.all(), id=question.id, worker=self._worker, text=text)
            is_taken = await self._store().mailbox.answer(answer)
            # Obeyed after the answer: nobody obeys an order that was withdrawn meanwhile.
            if is_taken and question.kind in self._orders:
                self._orders[question.kind]()
        return LOOK_EVERY

    async def _answer(self, question: Question) -> WorkerAnswer:
        status = self._inspector.status(await self._inspector.loop_lag(), self._inspector.cpu())
        if question.kind in {"dump", "memory"}:
            # Off the portal's loop, which renews leases: this may take a second.
            has_memory = question.kind == "memory"
            text = await asyncio.to_thread(self._inspector.dump, has_memory=has_memory)
            return WorkerAnswer(status=status, text=text)
        if question.kind == "status" or question.kind in self._orders:
            return WorkerAnswer(status=status)
        return WorkerAnswer(status=status, error=f"this worker does not know the question {question.kind!r}")
