"""A duty numbers what waits, unless another one has done so meanwhile (S60, S76)."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

import pytest

from fairlane.model.journal.entries import Entry, JournalName, NewEntry
from fairlane.model.scope import Scope
from fairlane.store.contract.journal import MAX_ENTRIES, JournalEnd, NumberRequest
from tests.contract.world import ALL, World

JOURNALS: Final[tuple[JournalName, ...]] = get_args(JournalName)


async def wait_for_numbers(world: World, number: int, journal: JournalName = "events") -> tuple[int, ...]:
    """Append entries, and return their places."""
    await world.append(journal, *(NewEntry(kind="k", subject=f"{n}", tenant="acme") for n in range(number)))
    return tuple(one.place for one in (await world.pending(journal)).entries)


def entries(*numbers: int, at: int = 5) -> tuple[Entry, ...]:
    """Return entries with these numbers."""
    made = {n: NewEntry(kind="made", subject=f"number {n}") for n in numbers}
    return tuple(Entry(n, at, made[n], b"\x00seal%d" % n) for n in numbers)


async def number(world: World, **values: Any) -> bool:
    """Ask for numbers; the first request of a new journal, if nothing is said."""
    base = {"scope": ALL, "journal": "events", "revision": 0, "taken": (), "entries": (), "memory": b""}
    return await world.store.journal.number(NumberRequest(**{**base, **values}))


@pytest.mark.parametrize("journal", JOURNALS)
async def test_what_was_taken_is_replaced_by_what_has_numbers(world: World, journal: JournalName) -> None:
    """S60, S76: instants, contents and seals are the duty's; what it did not take goes on waiting."""
    places = await wait_for_numbers(world, 5, journal)
    made = entries(1, 2, 3, at=world.now - 7)
    assert await number(world, journal=journal, taken=places[:3], entries=made, memory=b"\xff\x00m")
    pending, end, numbered = await world.journal(journal)
    assert end == JournalEnd(1, 1, 3, b"\xff\x00m")
    assert numbered == made[::-1]
    assert tuple(one.place for one in (await world.pending(journal)).entries) == places[3:]
    assert pending == (await world.pending(journal)).entries


async def test_numbers_go_on_without_a_gap(world: World) -> None:
    """S76: each request continues after the last one; the revision counts the requests."""
    places = await wait_for_numbers(world, 6)
    for revision in range(3):
        made = entries(2 * revision + 1, 2 * revision + 2)
        taken = places[2 * revision : 2 * revision + 2]
        assert await number(world, revision=revision, taken=taken, entries=made, memory=b"%d" % revision)
    assert (await world.pending("events")).end == JournalEnd(3, 1, 6, b"2")
    assert [one.number for one in await world.numbered("events")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("taken", "made"), [(4, 1), (4, 0), (0, 2), (1, 3), (0, 0)])
async def test_a_fold_makes_fewer_entries_or_more(world: World, taken: int, made: int) -> None:
    """S76: how many are published is the duty's matter; with none of either only the memory changes."""
    places = await wait_for_numbers(world, 4)
    numbers = entries(*range(1, made + 1))
    assert await number(world, taken=places[:taken], entries=numbers, memory=b"folds")
    reply = await world.pending("events")
    assert tuple(one.place for one in reply.entries) == places[taken:]
    assert reply.end == JournalEnd(1, min(made, 1), made, b"folds")
    assert await world.numbered("events") == list(numbers)


async def test_whoever_has_seen_an_older_journal_changes_nothing(world: World) -> None:
    """S60, S61, S76: neither entries nor memory; also if its numbers do not fit any more."""
    places = await wait_for_numbers(world, 3)
    assert await number(world, taken=places[:1], entries=entries(1), memory=b"first")
    before = await world.journal("events")
    for revision in (0, 2, -1):
        for made in (entries(1), entries(2), ()):
            assert not await number(
                world, revision=revision, taken=places[1:2], entries=made, memory=b"second"
            )
    assert await world.journal("events") == before


@pytest.mark.parametrize("numbers", [(3,), (1,), (0,), (2, 4), (2, 2), (3, 2), (2, 3, 5)])
async def test_a_gap_is_refused(world: World, numbers: tuple[int, ...]) -> None:
    """S76: nothing is taken and nothing remembered."""
    places = await wait_for_numbers(world, 3)
    assert await number(world, taken=places[:1], entries=entries(1), memory=b"first")
    before = await world.journal("events")
    with pytest.raises(ValueError, match="the next entry has the number"):
        await number(world, revision=1, taken=places[1:], entries=entries(*numbers), memory=b"second")
    assert await world.journal("events") == before


async def test_an_entry_is_taken_once(world: World) -> None:
    """S76: a place that waits no longer, never did, or is named twice, refuses the whole request."""
    places = await wait_for_numbers(world, 3)
    assert await number(world, taken=places[:1], entries=entries(1))
    before = await world.journal("events")
    for taken in (places[:1], places, (places[-1] + 1000,), (*places[1:], 0), (places[1], places[1])):
        assert not await number(world, revision=1, taken=taken, entries=entries(2), memory=b"second")
    assert await world.journal("events") == before
    assert await number(world, revision=1, taken=places[:0:-1], entries=entries(2, 3))
    assert await world.appended("events") == []


async def test_of_two_duties_at_once_one_numbers(world: World) -> None:
    """S61, S76: the other one is told, and each entry has one number."""
    for revision in range(5):
        places = (await wait_for_numbers(world, 4))[:4]
        made = entries(*range(4 * revision + 1, 4 * revision + 5))
        answers = await asyncio.gather(
            *(
                number(world, revision=revision, taken=places, entries=made, memory=b"%d" % n)
                for n in range(3)
            )
        )
        assert sorted(answers) == [False, False, True]
        end = (await world.pending("events")).end
        assert end == JournalEnd(revision + 1, 1, 4 * revision + 4, b"%d" % answers.index(True))
    assert [one.number for one in await world.numbered("events")] == list(range(1, 21))


async def test_what_is_appended_meanwhile_waits_for_the_next_numbers(world: World) -> None:
    """S60, S76: it is neither lost nor numbered by chance."""
    places = await wait_for_numbers(world, 2)
    await asyncio.gather(
        number(world, taken=places, entries=entries(1, 2)),
        *(world.append("events", NewEntry(kind="late", subject=f"{n}")) for n in range(5)),
    )
    assert sorted(one.subject for one in await world.appended("events")) == ["0", "1", "2", "3", "4"]
    assert [one.number for one in await world.numbered("events")] == [1, 2]
    assert [one.number for one in await world.number("events")] == [3, 4, 5, 6, 7]


async def test_the_journals_are_numbered_apart(world: World) -> None:
    """S60, S76: the numbers, revision and memory of one are not the other's."""
    for journal in JOURNALS:
        places = await wait_for_numbers(world, 2, journal)
        assert await number(
            world, journal=journal, taken=places, entries=entries(1, 2), memory=journal.encode()
        )
    assert (await world.pending("audit")).end == JournalEnd(1, 1, 2, b"audit")
    assert (await world.pending("events")).end == JournalEnd(1, 1, 2, b"events")


async def test_a_thousand_at_once_are_numbered(world: World) -> None:
    """S76: as many as a request appends, with a memory as long as that of a storm."""
    places = await wait_for_numbers(world, MAX_ENTRIES)
    memory = bytes(range(256)) * 1_000
    assert await number(world, taken=places, entries=entries(*range(1, MAX_ENTRIES + 1)), memory=memory)
    assert (await world.pending("events")).end == JournalEnd(1, 1, MAX_ENTRIES, memory)
    assert len(await world.numbered("events", page=300)) == MAX_ENTRIES


async def test_an_entry_that_is_numbered_waits_no_longer_under_any_scope(world: World) -> None:
    """S9, S76: it is in one place at a time."""
    await wait_for_numbers(world, 3)
    await world.number("events", 2)
    for scope in (ALL, Scope("acme")):
        assert [one.subject for one in await world.appended("events", scope)] == ["2"]
        assert [one.entry.subject for one in await world.numbered("events", scope=scope)] == ["0", "1"]
