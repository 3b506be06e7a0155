"""Events get numbers, storms are folded, old ones go (S76)."""

from __future__ import annotations

import logging

import msgspec
import pytest

from fairlane.app.journal_settings import EventSettings
from fairlane.duties.journals import tell_events
from fairlane.model.instants import DAY, MINUTE, SECOND
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.memory import FORMAT
from fairlane.model.policy.overrides import SubjectKind
from fairlane.store.contract.journal import MAX_ENTRIES, NumberRequest
from tests.contract.world import World
from tests.duties.journals.crew import (
    ALL,
    append,
    die,
    events_of,
    happen,
    numbered,
    subscriber,
    tell,
    teller,
    told,
)

MOST = 100


async def test_while_nothing_happens_the_duty_looks_rarely(world: World) -> None:
    """One question each, and nothing is written."""
    duty = teller()
    await tell(world)
    before = await world.journal("events")
    assert await duty(world.store) == tell_events.QUIET
    assert await world.journal("events") == before


async def test_an_event_is_told_by_the_next_pass(world: World) -> None:
    """A job that died, say; and the duty looks every second while it may come again."""
    await die(world)
    duty = teller()
    assert await duty(world.store) == tell_events.EVERY
    (event,) = await numbered(world)
    assert (event.number, event.entry.kind, event.entry.tenant) == (1, "dead_letter", "acme")
    assert await world.appended("events") == []
    world.advance(10)
    assert await duty(world.store) == tell_events.EVERY
    assert await duty(world.store) == tell_events.QUIET


async def test_a_storm_is_its_first_event_and_one_count(world: World) -> None:
    """Also if the leader changes meanwhile."""
    await happen(world, "w1")
    await tell(world)
    await happen(world, "w1", "w2", "w1")
    world.advance(1)
    await tell(world)
    await append(world, NewEntry(kind="worker_lost", subject="w1", count=5))
    await tell(world)
    assert await told(world) == [("worker_lost", "w1", 1), ("worker_lost", "w2", 1)]
    world.advance(9)
    await tell(world)
    assert await told(world) == [
        ("worker_lost", "w1", 1),
        ("worker_lost", "w2", 1),
        ("worker_lost", "w1", 7),
    ]


async def test_letters_of_one_cause_that_are_run_again_together_are_a_storm(world: World) -> None:
    """Else a bulk action would push every other event out of the log, and each letter would be a job."""
    dead = [await world.die() for _ in range(5)]
    await tell(world)
    world.advance(11)
    await tell(world)
    before = len(await told(world))
    await world.reprocess(*(world.again(job) for job in dead[:4]))
    await world.review("resolve", dead[4].id)
    await tell(world)
    world.advance(11)
    await tell(world)
    events = (await numbered(world))[before:]
    assert [(one.entry.kind, one.entry.count) for one in events] == [
        ("job_dlq_reprocess_requested", 1),
        ("dead_letter_reviewed", 1),
        ("job_dlq_reprocess_requested", 3),
    ]
    assert len({one.entry.subject for one in events}) == 1


async def test_more_than_a_page_is_numbered_at_once(world: World) -> None:
    """The duty comes back without a pause while there is more."""
    many = [f"w{number}" for number in range(MAX_ENTRIES)]
    await happen(world, *many)
    await happen(world, "last")
    duty = teller()
    assert [await duty(world.store) for _ in range(2)] == [0, tell_events.EVERY]
    found = await numbered(world, after=MAX_ENTRIES - 1)
    assert [(one.number, one.entry.subject) for one in found] == [
        (MAX_ENTRIES, many[-1]),
        (MAX_ENTRIES + 1, "last"),
    ]


async def test_a_leader_whose_journal_has_changed_leaves_it_to_the_other(world: World) -> None:
    """It says nothing and comes back."""
    await happen(world, "w1")
    late = Late(world)
    assert await teller()(late) == tell_events.EVERY  # type: ignore[arg-type]
    assert await told(world) == [("worker_lost", "w1", 1)]


class Late:
    """A store in which another leader numbers the events just before this one does."""

    def __init__(self, world: World) -> None:
        """Be the world's store otherwise."""
        self._world = world
        self.registry, self.dead, self.jobs, self.journal = (
            world.store.registry,
            world.store.dead,
            world.store.jobs,
            self,
        )
        self.pending, self.entries, self.trim = (
            world.store.journal.pending,
            world.store.journal.entries,
            world.store.journal.trim,
        )

    async def number(self, request: NumberRequest) -> bool:
        """Be too late."""
        await tell(self._world)
        return await self._world.store.journal.number(request)


async def test_a_memory_of_a_newer_version_is_left_to_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Its entries wait; that is said once."""
    newer = msgspec.msgpack.encode({"format": FORMAT + 1})
    request = NumberRequest(scope=ALL, journal="events", revision=0, taken=(), entries=(), memory=newer)
    assert await world.store.journal.number(request)
    await happen(world, "w1")
    duty = teller()
    with caplog.at_level(logging.WARNING):
        assert [await duty(world.store) for _ in range(2)] == [MINUTE, MINUTE]
    assert [one.__dict__["event"] for one in caplog.records] == ["journal_too_new"]
    assert len(await world.appended("events")) == 1


# ── what is removed ──────────────────────────────────────────────────────────


async def test_events_are_removed_when_they_are_old(world: World) -> None:
    """The numbers go on."""
    await happen(world, "w1", "w2")
    await tell(world)
    world.advance(DAY / SECOND)
    await happen(world, "w3")
    await tell(world)
    assert [one.number for one in await numbered(world)] == [1, 2, 3]
    world.advance(1)
    await tell(world, events=EventSettings(keep=DAY))
    assert [one.number for one in await numbered(world)] == [3]


async def test_only_the_newest_events_are_kept(world: World) -> None:
    """As many as the setting says, and some more until it is worth a pass."""
    few = EventSettings(most=MOST)
    await happen(world, *(f"w{number}" for number in range(MOST + MOST // 10)))
    await tell(world, events=few)
    duty = teller(events=few)
    await duty(world.store)
    assert len(await numbered(world)) == MOST
    await happen(world, "again")
    await duty(world.store)
    assert len(await numbered(world)) == MOST + 1
    await happen(world, *(f"v{number}" for number in range(MOST // 10)))
    await duty(world.store)
    assert await duty(world.store) == 0
    assert len(await numbered(world)) == MOST


async def test_what_a_subscriber_has_not_got_is_kept_up_to_a_bound_and_then_counted(world: World) -> None:
    """As soon as it goes on, one event says how many were lost."""
    few = EventSettings(most=MOST)
    await world.register("w1", subscriber("page", "worker_lost", queue="pages"))
    await happen(world, "first")
    await tell(world, events=few)
    await world.close(SubjectKind.QUEUE, "pages")
    for page in range(11):
        await happen(world, *(f"{page}-{number}" for number in range(MOST)))
        await tell(world, events=few)
    stored = await numbered(world)
    assert (stored[0].number, len(stored)) == (2, 10 * MOST)
    await world.reopen(SubjectKind.QUEUE, "pages")
    await tell(world, events=few)
    assert len(await numbered(world)) <= MOST + MOST // 10
    assert (await told(world))[-1] == ("events_lost", "", MOST)
    assert await events_of(world, "page") == [*range(1, 10 * MOST + 2)]
