"""The mailbox: questions to workers, and their answers (S70)."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlane.model.instants import SECOND, Micros
from fairlane.store.contract.mailbox import (
    MAX_ANSWER_SIZE,
    MAX_QUESTIONS,
    QUESTIONS_KEPT,
    AnswerRequest,
    AskRequest,
    Question,
    ReadAnswerRequest,
    StoredAnswer,
    UnansweredRequest,
)
from fairlane.store.contract.registry import LeaveRequest
from fairlane.store.contract.request import Request
from tests.contract.world import ALL, World

VALID: Micros = 30 * SECOND


def key(number: int) -> UUID:
    """Return the id of a question; a higher number sorts later."""
    return UUID(int=number + 1)


async def ask(world: World, number: int = 0, worker: str = "w1", kind: str = "dump") -> bool:
    """Ask a worker something."""
    request = AskRequest(scope=ALL, id=key(number), worker=worker, kind=kind, valid_for=VALID)
    return await world.store.mailbox.ask(request)


async def unanswered(world: World, worker: str = "w1") -> list[Question]:
    """Return what a worker is asked."""
    return list(await world.store.mailbox.unanswered(UnansweredRequest(scope=ALL, worker=worker)))


async def answer(world: World, text: bytes = b"fine", number: int = 0, worker: str = "w1") -> bool:
    """Answer a question."""
    request = AnswerRequest(scope=ALL, id=key(number), worker=worker, text=text)
    return await world.store.mailbox.answer(request)


async def read(world: World, number: int = 0) -> StoredAnswer | None:
    """Read the answer to a question."""
    return await world.store.mailbox.read(ReadAnswerRequest(scope=ALL, id=key(number)))


async def clean(world: World) -> int:
    """Delete old questions."""
    return await world.store.mailbox.clean(Request(scope=ALL))


async def test_a_question_reaches_its_worker_and_the_answer_comes_back(world: World) -> None:
    """S70: with the store's instants; the question is then no longer asked."""
    await world.register()
    asked_at = world.now
    assert await ask(world)
    assert await unanswered(world) == [Question(key(0), "dump", asked_at)]
    assert await read(world) == StoredAnswer(asked_at)
    world.advance(2)
    assert await answer(world, b"stacks\x00\xff")
    assert await unanswered(world) == []
    assert await read(world) == StoredAnswer(asked_at, world.now, b"stacks\x00\xff")


async def test_a_worker_that_is_not_registered_cannot_be_asked(world: World) -> None:
    """S70: nothing is stored; also after it has left."""
    assert not await ask(world, worker="nobody")
    await world.register()
    await world.store.registry.leave(LeaveRequest(scope=ALL, worker="w1"))
    assert not await ask(world)
    assert await read(world) is None


async def test_a_worker_sees_only_its_own_questions(world: World) -> None:
    """S70: and answers no other's."""
    await world.register()
    await world.register("w2")
    await ask(world, 1)
    await ask(world, 2, worker="w2")
    assert [one.id for one in await unanswered(world)] == [key(1)]
    assert [one.id for one in await unanswered(world, "w2")] == [key(2)]
    assert not await answer(world, number=2)
    assert (await read(world, 2)) == StoredAnswer(world.now)


async def test_the_first_answer_stays(world: World) -> None:
    """S70: a second one changes nothing."""
    await world.register()
    await ask(world)
    assert await answer(world, b"first")
    world.advance(1)
    assert not await answer(world, b"second")
    found = await read(world)
    assert found is not None
    assert found.text == b"first"


async def test_a_repeated_question_changes_nothing(world: World) -> None:
    """S70: an asker that got no reply may ask again under the same id, also after the answer."""
    await world.register()
    assert await ask(world)
    before = await unanswered(world)
    world.advance(1)
    assert await ask(world)
    assert await unanswered(world) == before
    await answer(world)
    assert await ask(world)
    assert await unanswered(world) == []


async def test_a_question_that_is_no_longer_valid_is_neither_asked_nor_answered(world: World) -> None:
    """S70: a worker that was blocked for minutes does not stop because somebody asked it to back then."""
    await world.register()
    await ask(world)
    world.advance((VALID - 1) / SECOND)
    assert len(await unanswered(world)) == 1
    world.advance(1 / SECOND)
    assert await unanswered(world) == []
    assert not await answer(world)
    assert await read(world) == StoredAnswer(world.now - VALID)


async def test_the_newest_questions_are_kept_oldest_first(world: World) -> None:
    """S70: one more drops the oldest, answered or not; another worker's stay."""
    await world.register()
    await world.register("w2")
    await ask(world, 99, worker="w2")
    for number in range(MAX_QUESTIONS):
        await ask(world, number)
    await answer(world, number=0)
    assert [one.id for one in await unanswered(world)] == [key(one) for one in range(1, MAX_QUESTIONS)]
    world.advance(1)
    await ask(world, MAX_QUESTIONS)
    await ask(world, MAX_QUESTIONS + 1)
    assert [one.id for one in await unanswered(world)] == [key(one) for one in range(2, MAX_QUESTIONS + 2)]
    assert (await read(world, 0), await read(world, 1)) == (None, None)
    assert await read(world, 99) is not None


async def test_an_answer_outlives_the_worker_until_it_is_cleaned(world: World) -> None:
    """S70: who asked a worker to stop reads its answer after it has left; an hour later nothing is kept."""
    await world.register()
    await ask(world)
    await answer(world)
    await world.store.registry.leave(LeaveRequest(scope=ALL, worker="w1"))
    world.advance((QUESTIONS_KEPT - 1) / SECOND)
    assert await clean(world) == 0
    assert await read(world) is not None
    world.advance(1 / SECOND)
    assert await clean(world) == 1
    assert await read(world) is None


async def test_the_longest_answer_is_stored_and_a_longer_one_refused(world: World) -> None:
    """S70: before a store is asked."""
    await world.register()
    await ask(world)
    with pytest.raises(ValueError, match="too long"):
        await answer(world, b"x" * (MAX_ANSWER_SIZE + 1))
    assert await answer(world, b"x" * MAX_ANSWER_SIZE)
    found = await read(world)
    assert found is not None
    assert found.text is not None
    assert len(found.text) == MAX_ANSWER_SIZE
