"""A duty deletes the oldest entries, unless the journal has changed meanwhile (S60, S76)."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

import pytest

from fairlane.model.journal.entries import Entry, JournalName, NewEntry
from fairlane.store.contract.journal import JournalEnd, NumberRequest, TrimRequest
from tests.contract.world import ALL, World

JOURNALS: Final[tuple[JournalName, ...]] = get_args(JournalName)


async def write(world: World, journal: JournalName = "events") -> None:
    """Number five entries, and let one wait."""
    await world.append(journal, *(NewEntry(kind="k", subject=f"{n}") for n in range(6)))
    await world.number(journal, 5, memory=b"before")


async def trim(world: World, up_to: int, **values: Any) -> bool:
    """Ask to delete; of the journal as `write` has left it, if nothing is said."""
    base = {"scope": ALL, "journal": "events", "revision": 1, "memory": b"after"}
    return await world.store.journal.trim(TrimRequest(**{**base, **values}, up_to=up_to))


async def kept(world: World, journal: JournalName = "events") -> list[int]:
    """Return the numbers that are stored."""
    return [one.number for one in await world.numbered(journal)]


@pytest.mark.parametrize("journal", JOURNALS)
@pytest.mark.parametrize("up_to", [0, 1, 3, 5])
async def test_the_oldest_go_and_the_others_keep_their_numbers(
    world: World, journal: JournalName, up_to: int
) -> None:
    """S60, S76: `first` is the oldest that is stored, 0 if none is; what waits is left alone."""
    await write(world, journal)
    assert await trim(world, up_to, journal=journal)
    left = list(range(up_to + 1, 6))
    assert await kept(world, journal) == left
    reply = await world.pending(journal)
    assert reply.end == JournalEnd(2, left[0] if left else 0, 5, b"after")
    assert [one.entry.subject for one in reply.entries] == ["5"]


async def test_numbers_go_on_after_everything_was_deleted(world: World) -> None:
    """S76: a number is never used again."""
    await write(world)
    assert await trim(world, 5)
    assert [one.number for one in await world.number("events")] == [6]
    assert (await world.pending("events")).end == JournalEnd(3, 6, 6, b"after")
    assert await kept(world) == [6]


async def test_a_call_deletes_so_many_and_the_next_ones_the_rest(world: World) -> None:
    """S61, S76: the oldest first; the memory is the last call's, also if there was nothing to delete."""
    await write(world)
    for revision, left in ((1, [3, 4, 5]), (2, [5]), (3, [5]), (4, [5])):
        assert await trim(world, 4, limit=2, revision=revision, memory=b"%d" % revision)
        assert await kept(world) == left
    assert (await world.pending("events")).end == JournalEnd(5, 5, 5, b"4")


async def test_whoever_has_seen_an_older_journal_deletes_nothing(world: World) -> None:
    """S60, S61, S76: and changes no memory."""
    await write(world)
    before = await world.journal("events")
    for revision in (0, 2):
        for up_to in (3, 9):
            assert not await trim(world, up_to, revision=revision)
    assert await world.journal("events") == before


async def test_what_has_no_number_yet_cannot_be_deleted(world: World) -> None:
    """S76: it is refused, and nothing goes."""
    await write(world)
    before = await world.journal("events")
    with pytest.raises(ValueError, match="the journal ends at 5"):
        await trim(world, 6)
    assert await world.journal("events") == before


async def test_the_other_journal_keeps_its_entries(world: World) -> None:
    """S60, S76: events go after days, the audit after a year."""
    for journal in JOURNALS:
        await write(world, journal)
    before = await world.journal("audit")
    assert await trim(world, 5)
    assert await world.journal("audit") == before


async def test_of_a_trim_and_a_numbering_at_once_one_happens(world: World) -> None:
    """S61, S76: both saw the same journal, so that one of them knows no longer what it does."""
    await write(world)
    (waiting,) = (await world.pending("events")).entries
    entry = Entry(6, waiting.at, waiting.entry)
    request = NumberRequest(
        scope=ALL, journal="events", revision=1, taken=(waiting.place,), entries=(entry,), memory=b"numbered"
    )
    trimmed, numbered = await asyncio.gather(trim(world, 5), world.store.journal.number(request))
    assert trimmed is not numbered
    assert await kept(world) == ([1, 2, 3, 4, 5, 6] if numbered else [])
    memory = (await world.pending("events")).end.memory
    assert memory == (b"numbered" if numbered else b"after")
