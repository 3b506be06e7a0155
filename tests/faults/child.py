"""A process that uses a store and writes down what it saw, to be killed or to compete with others.

``python -m tests.faults.child ROLE FILE LEDGER [NUMBER]``. It says "." on standard output for each
acknowledged step, and begins when it is told so on standard input.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw

from fairlane import Fairlane, Relay
from fairlane.model.instants import SECOND
from fairlane.model.job import Claim
from fairlane.model.lifecycle.states import is_finished
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.contract.registry import WaitRequest
from fairlane.store.sqlite.store import SqliteStore
from tests.contract.world import ALL, HANDED_BACK, SNOOZED, SUCCEEDED, failed, ruined
from tests.faults.campaign import Actor, Ledger

TENANTS = ("acme", "bolt", "core", "dune")
ENDINGS = (SUCCEEDED, SUCCEEDED, SUCCEEDED, failed(), SNOOZED, HANDED_BACK, ruined())


def say() -> None:
    """Tell the parent that one more step is acknowledged and written down."""
    os.write(1, b".")


async def churn(actor: Actor, number: int) -> None:
    """Enqueue, claim, settle, settle again and reclaim for ever, as several clients of one store."""
    await asyncio.gather(*(_churn(actor, random.Random(number + client)) for client in range(3)))


async def _churn(actor: Actor, draw: random.Random) -> None:
    old: list[Claim] = []
    while True:
        size = draw.randint(1, 4)
        delay = draw.choice((0, 0, 1_000))
        await actor.give(*(actor.new(draw.choice(TENANTS), delay=delay) for _ in range(size)))
        say()
        claims = await actor.start(draw.randint(1, 4), lease=SECOND)
        say()
        await actor.end(claims, draw.choice(ENDINGS))
        say()
        old = [*old[-50:], *claims]
        if draw.random() < 0.3:  # once more, when others may have the job: stale, whatever its state
            await actor.end({claim.job.id: claim for claim in draw.sample(old, len(old) // 2)}.values())
            say()
        if draw.random() < 0.2:
            await actor.take_back()
            say()


async def enqueue(actor: Actor, number: int) -> None:
    """Enqueue so many jobs in batches of ten."""
    for start in range(0, number, 10):
        tenant = TENANTS[start // 10 % len(TENANTS)]
        delay = 1_000 * (start // 10 % 3)
        await actor.give(*(actor.new(tenant, delay=delay) for _ in range(10)))
        say()


async def storm(actor: Actor, number: int) -> None:
    """Enqueue so many jobs one by one, as fast as the file takes them."""
    for _ in range(number):
        await actor.give(actor.new())
    say()


async def work(actor: Actor, number: int) -> None:
    """Run jobs until all of them are settled, by anybody."""
    waiting = WaitRequest(scope=ALL, worker=actor.name, queues=("default",), at_most=SECOND // 4)
    while True:
        claims = await actor.start(4)
        if claims:
            await actor.end(claims)
        elif await _settled(actor) >= number:
            return
        else:
            await actor.store.registry.wait(waiting)


async def tidy(actor: Actor, number: int) -> None:
    """Reclaim and promote until all jobs are settled."""
    while await _settled(actor) < number:
        await actor.take_back()
        await actor.promote()


async def join(actor: Actor, number: int) -> None:
    """Order and enqueue in transactions of our own connection, for ever; roll some of them back."""
    own, draw = apsw.Connection(actor.file), random.Random(number)
    while True:
        own.execute("BEGIN")
        for _ in range(draw.randint(1, 3)):
            jobs = tuple(actor.new(draw.choice(TENANTS)) for _ in range(draw.randint(1, 3)))
            await actor.store.jobs.enqueue_in(own, EnqueueRequest(scope=ALL, jobs=jobs))
            say()
            own.executemany("INSERT INTO orders VALUES (?)", [(job.id.bytes,) for job in jobs])
        own.execute("ROLLBACK" if draw.random() < 0.2 else "COMMIT")
        say()


async def join_once(actor: Actor, number: int) -> None:
    """Enqueue one job in a transaction of our own, commit it if the number says so, and stay there."""
    own = apsw.Connection(actor.file)
    own.execute("BEGIN")
    await actor.store.jobs.enqueue_in(own, EnqueueRequest(scope=ALL, jobs=(actor.new(),)))
    if number:
        own.execute("COMMIT")
    say()
    await asyncio.Event().wait()


class Telling(sqlite3.Connection):
    """A connection of the relay that says so when it has read, and when it has removed rows."""

    def rollback(self) -> None:
        """End a reading."""
        super().rollback()
        say()

    def commit(self) -> None:
        """Remove rows; now and then linger before that, when the store has their jobs already."""
        say()
        if random.random() < 0.3:
            threading.Event().wait(0.03)
        super().commit()
        say()


async def relay(actor: Actor, number: int) -> None:
    """Move the rows of `shop.db`, which is in the folder of the store's file, in batches, for ever."""
    place = Path(actor.file)
    app = Fairlane(f"sqlite:///{place}")
    shop = place.with_name("shop.db")
    moves = Relay(app, lambda: sqlite3.connect(shop, factory=Telling), poll=0.001, batch=number)
    await asyncio.to_thread(moves.run, threading.Event())


async def _settled(actor: Actor) -> int:
    states = await actor.states()
    return sum(number for state, number in states.items() if is_finished(state))


ROLES: dict[str, Callable[[Actor, int], Awaitable[None]]] = {
    "churn": churn,
    "enqueue": enqueue,
    "storm": storm,
    "work": work,
    "tidy": tidy,
    "join": join,
    "join_once": join_once,
    "relay": relay,
}


async def main(role: str, file: str, record: str, number: str = "0") -> None:
    """Play one role to its end."""
    write = Ledger(Path(record)).write
    say()
    sys.stdin.buffer.read(1)
    store = SqliteStore(f"sqlite:///{file}")
    actor = Actor(store, write)
    actor.file = file
    await ROLES[role](actor, int(number))
    await store.upkeep.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
