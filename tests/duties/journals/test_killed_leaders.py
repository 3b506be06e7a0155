"""Wherever a leader ends, and however many there are: each event once, one job for each subscriber (S77)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias, cast

import pytest

from fairlane.app.journal_settings import EventSettings
from fairlane.duties.journals.tell_events import TellEvents
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.memory import AuditMemory, decode_memory
from fairlane.model.journal.sealing import Verifier
from fairlane.store.contract import Store
from fairlane.store.contract.journal import PendingRequest
from tests.contract.world import World
from tests.duties.journals.crew import (
    ALL,
    append,
    die,
    event_of,
    events_of,
    happen,
    jobs_of,
    numbered,
    sealer,
    settle_down,
    subscriber,
    teller,
    told,
)
from tests.duties.journals.interrupted import InterruptedStore, KilledError, killed

FEW = EventSettings(most=5)
KEY = b"a key of some length"
SETTINGS = {"alert_above": 3}
SUBSCRIBERS = ("page", "log")

Interruption: TypeAlias = Callable[[World], Callable[[], Awaitable[None]]]


def by_death(world: World) -> Callable[[], Awaitable[None]]:
    """The leader is killed."""
    return killed


def by_another(world: World) -> Callable[[], Awaitable[None]]:
    """Another leader does everything meanwhile, and the first goes on with what it has read."""

    async def tell_all() -> None:
        await settle_down(world, teller(**SETTINGS))
        await settle_down(world, sealer(key=KEY))

    return tell_all


BOTH = pytest.mark.parametrize("interruption", [by_death, by_another])


@BOTH
async def test_each_event_is_numbered_once_and_makes_one_job_for_each_subscriber(
    world: World, interruption: Interruption
) -> None:
    """Wherever a leader is interrupted: before each of its calls in turn."""
    await world.register("w1", *(subscriber(name, "worker_lost") for name in SUBSCRIBERS))
    subjects: list[str] = []
    for number in range(30):
        names = [f"{number}-{one}" for one in range(3)]
        await happen(world, *names)
        subjects += names
        interrupted = InterruptedStore(world.store, number, interruption(world))
        await lead(teller(events=FEW, **SETTINGS), interrupted)
        if interrupted.calls <= number:
            break
        world.advance(1)
    else:
        raise AssertionError("a leader finds no end")
    assert number > 8, "a leader makes more calls than were interrupted"
    await settle_down(world, teller(**SETTINGS))
    for name in SUBSCRIBERS:
        events = [event_of(job) for job in await jobs_of(world, name)]
        assert sorted(event["subject"] for event in events) == sorted(subjects)
        assert sorted(event["number"] for event in events) == [*range(1, len(subjects) + 1)]


@BOTH
async def test_the_alert_is_given_once_wherever_a_leader_ends(
    world: World, interruption: Interruption
) -> None:
    """And a crossing is never missed."""
    for number in range(20):
        letters = await world.letters(review="pending")
        await world.review("resolve", *(one.job.id for one in letters))
        world.advance(11)
        await settle_down(world, teller(**SETTINGS))
        await die(world, 4)
        interrupted = InterruptedStore(world.store, number, interruption(world))
        await lead(teller(**SETTINGS), interrupted)
        await settle_down(world, teller(**SETTINGS))
        found = [one for one in await told(world) if one[0] == "dlq_alert"]
        assert len(found) == number + 1
        if interrupted.calls <= number:
            return
    raise AssertionError("a pass without an end")


@BOTH
async def test_every_count_of_a_storm_is_told_once_wherever_a_leader_ends(
    world: World, interruption: Interruption
) -> None:
    """Open folds are stored with the events."""
    happened, number = 0, 0
    while True:
        await append(world, NewEntry(kind="worker_lost", subject="w1", count=number + 1))
        happened += number + 1
        interrupted = InterruptedStore(world.store, number, interruption(world))
        await lead(teller(**SETTINGS), interrupted)
        if interrupted.calls <= number:
            break
        number += 1
        world.advance(3)
    world.advance(11)
    await settle_down(world, teller())
    assert sum(count for _, _, count in await told(world)) == happened


@BOTH
async def test_the_chain_of_the_audit_holds_wherever_a_leader_ends(
    world: World, interruption: Interruption
) -> None:
    """No entry twice, none left out."""
    done = 0
    for number in range(5):
        await append(world, NewEntry(kind="queues.pause", subject=str(number)), journal="audit")
        done += 1
        interrupted = InterruptedStore(world.store, number, interruption(world))
        with suppress(KilledError):
            await sealer(key=KEY)(cast("Store", interrupted))
    await settle_down(world, sealer(key=KEY))
    entries = await numbered(world, "audit")
    assert [one.entry.subject for one in entries] == [str(one) for one in range(done)]
    end = (await world.store.journal.pending(PendingRequest(scope=ALL, journal="audit", limit=0))).end
    memory = decode_memory(end.memory, AuditMemory)
    assert memory is not None
    verifier = Verifier(memory.checkpoint, KEY)
    assert [*verifier.begin(), *verifier.read(entries), *verifier.end(end.last, memory.seal)] == []


async def test_several_leaders_at_once_tell_each_event_once(world: World) -> None:
    """However their calls interleave."""
    await world.register("w1", subscriber("page", "worker_lost"))
    for turn in range(4):
        await happen(world, *(f"{turn}-{number}" for number in range(30)))
        leaders = [teller() for _ in range(3)]
        await asyncio.gather(*(settle_down(world, leader) for leader in leaders))
        world.advance(1)
    await settle_down(world, teller())
    assert await events_of(world, "page") == [*range(1, 121)]
    assert len({subject for _, subject, _ in await told(world)}) == 120


async def lead(duty: TellEvents, store: InterruptedStore) -> None:
    """Take passes until nothing is left to do, or until the leader ends in the middle of one."""
    with suppress(KilledError):
        while await duty(cast("Store", store)) == 0:
            pass
