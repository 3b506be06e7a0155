"""Short scenes that together write to every table that jobs touch, each able to fail by itself."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from fairlane.model.errors import StoreError
from tests.contract.world import HANDED_BACK, SNOOZED, failed, payload, ruined
from tests.faults.campaign import Actor


async def _enqueue(actor: Actor, draw: random.Random) -> None:
    await actor.give(*(actor.new(f"t{draw.randrange(4)}") for _ in range(draw.randint(1, 5))))


async def _enqueue_much(actor: Actor, draw: random.Random) -> None:
    body = payload(text=draw.randbytes(6_000).hex())
    await actor.give(*(actor.new("big", payload=body, dedup_key=draw.randbytes(8).hex()) for _ in range(2)))


async def _run(actor: Actor, draw: random.Random) -> None:
    await actor.end(await actor.start(draw.randint(1, 4)))


async def _fail(actor: Actor, draw: random.Random) -> None:
    ending = draw.choice((failed(), SNOOZED, HANDED_BACK, ruined()))
    await actor.end(await actor.start(2), ending)


async def _abandon(actor: Actor, draw: random.Random) -> None:
    await actor.start(1)
    actor.advance(120)
    await actor.take_back()
    await actor.promote()


async def _look(actor: Actor, draw: random.Random) -> None:
    await actor.counts()
    await actor.peek(2)


SCENES: tuple[Callable[[Actor, random.Random], Awaitable[None]], ...] = (
    _enqueue,
    _run,
    _enqueue_much,
    _fail,
    _abandon,
    _enqueue,
    _look,
    _run,
)


async def play(actor: Actor, draw: random.Random) -> list[StoreError]:
    """Play all scenes, whatever becomes of each, and return the errors."""
    errors = []
    for scene in SCENES:
        try:
            await scene(actor, draw)
        except StoreError as error:
            errors.append(error)
    return errors
