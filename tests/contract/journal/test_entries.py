"""Numbered entries are read by cursor, in both directions, by every filter (S60, S76)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from fairlane.model.instants import SECOND
from fairlane.model.journal.entries import NewEntry
from fairlane.model.scope import Scope
from fairlane.store.contract.journal import MAX_ENTRIES, EntriesRequest, EntryPage, TrimRequest
from fairlane.store.contract.request import MAX_ROWS_READ
from tests.contract.world import ALL, World

WRITTEN: Final[list[tuple[str, str | None, str]]] = [
    ("dead_letter", "acme", "a"),
    ("dead_letter", "globex", "a"),
    ("job_stuck", "acme", "b"),
    ("worker_lost", None, "w1"),
    ("dead_letter", "acme", "b"),
    ("queue_full", "*", "a"),
    ("job_stuck", "acme", "a"),
]
"""Kind, tenant and subject of the entries 1 to 7, a second apart."""

FILTERS: Final[list[tuple[dict[str, Any], list[int]]]] = [
    ({}, [1, 2, 3, 4, 5, 6, 7]),
    ({"kinds": ["dead_letter"]}, [1, 2, 5]),
    ({"kinds": ["dead_letter", "worker_lost"]}, [1, 2, 4, 5]),
    ({"kinds": ["dead"]}, []),
    ({"subject": "a"}, [1, 2, 6, 7]),
    ({"subject": ""}, []),
    ({"since": 2 * SECOND}, [3, 4, 5, 6, 7]),
    ({"until": 2 * SECOND}, [1, 2]),
    ({"since": SECOND + 1, "until": 4 * SECOND + 1}, [3, 4, 5]),
    ({"scope": Scope("acme")}, [1, 3, 5, 7]),
    ({"scope": Scope("globex")}, [2]),
    ({"scope": Scope("initech")}, []),
    ({"scope": Scope("acme"), "kinds": ["job_stuck"], "subject": "a"}, [7]),
    ({"scope": Scope("acme"), "subject": "a", "until": 6 * SECOND}, [1]),
]


async def write(world: World) -> None:
    """Append the seven, a second apart, and number them."""
    for kind, tenant, subject in WRITTEN:
        await world.append("events", NewEntry(kind=kind, tenant=tenant, subject=subject))
        world.advance(1)
    await world.number("events")


async def read(world: World, **values: Any) -> EntryPage:
    """Read one page."""
    return await world.store.journal.entries(EntriesRequest(**{"scope": ALL, "journal": "events", **values}))


def numbers(page: EntryPage) -> list[int]:
    """Return the numbers of a page."""
    return [one.number for one in page.entries]


@pytest.mark.parametrize(("filters", "found"), FILTERS, ids=str)
@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
async def test_every_filter_finds_its_entries_in_both_directions(
    world: World, filters: dict[str, Any], found: list[int], limit: int, backwards: bool
) -> None:
    """S9, S60, S76: all filters must hold; a tenant sees its own; pages meet each entry once."""
    dawn = world.now
    await write(world)
    times = {key: dawn + value for key, value in filters.items() if key in {"since", "until"}}
    kinds = {key: frozenset(value) for key, value in filters.items() if key == "kinds"}
    values = {**filters, **times, **kinds}
    assert await world.numbered("events", backwards=backwards, page=limit, **values) == [
        entry for entry in await world.numbered("events", backwards=backwards) if entry.number in found
    ]
    mine = [one.number for one in await world.numbered("events", backwards=backwards, page=limit, **values)]
    assert mine == (found[::-1] if backwards else found)


async def test_reading_forwards_goes_on_where_it_ended(world: World) -> None:
    """S76: `after` of the last page is the place for the next look, and finds what came since."""
    await write(world)
    page = await read(world, limit=3)
    assert (numbers(page), page.after) == ([1, 2, 3], 3)
    page = await read(world, after=3)
    assert (numbers(page), page.after) == ([4, 5, 6, 7], 7)
    assert await read(world, after=7) == EntryPage((), 7)
    await world.append("events", NewEntry(kind="new"))
    assert await read(world, after=7) == EntryPage((), 7)
    await world.number("events")
    assert numbers(await read(world, after=7)) == [8]


async def test_a_look_that_finds_nothing_need_not_be_made_again(world: World) -> None:
    """S76: `after` passes what does not match, but nothing that is not numbered yet."""
    await write(world)
    page = await read(world, kinds=frozenset({"none"}))
    assert page == EntryPage((), 7)
    page = await read(world, kinds=frozenset({"worker_lost"}))
    assert (numbers(page), page.after) == ([4], 7)
    page = await read(world, kinds=frozenset({"worker_lost"}), limit=1)
    assert numbers(page) == [4]
    assert page.after in {4, 7}


async def test_reading_backwards_begins_at_the_end_and_ends_at_the_beginning(world: World) -> None:
    """S76: newest first; `after` is exclusive, and None says that there is nothing before."""
    await write(world)
    page = await read(world, backwards=True, limit=3)
    assert (numbers(page), page.after) == ([7, 6, 5], 5)
    page = await read(world, backwards=True, after=5)
    assert (numbers(page), page.after) == ([4, 3, 2, 1], None)
    assert await read(world, backwards=True, after=1) == EntryPage((), None)
    page = await read(world, backwards=True, after=3, limit=2)
    assert numbers(page) == [2, 1]


@pytest.mark.parametrize("backwards", [False, True])
async def test_an_empty_journal_is_the_end(world: World, backwards: bool) -> None:
    """S76: what waits for a number is not in it, nor is what is in the other journal."""
    await world.append("events", NewEntry(kind="waits"))
    await world.append("audit", NewEntry(kind="other"))
    await world.number("audit")
    assert await read(world, backwards=backwards) == EntryPage((), None)


async def test_a_journal_that_has_only_a_memory_is_empty(world: World) -> None:
    """S76: Its duty has looked at it, and nothing had happened."""
    await world.number("events")
    assert await read(world) == EntryPage((), None)


async def test_a_cursor_from_before_the_oldest_entry_finds_it(world: World) -> None:
    """S76: what was deleted is passed over, by a reader of all and of a tenant."""
    await write(world)
    trim = TrimRequest(scope=ALL, journal="events", revision=1, up_to=4, memory=b"")
    assert await world.store.journal.trim(trim)
    assert numbers(await read(world)) == [5, 6, 7]
    assert numbers(await read(world, after=2, limit=1)) == [5]
    assert [one.number for one in await world.numbered("events", scope=Scope("acme"))] == [5, 7]
    page = await read(world, backwards=True)
    assert (numbers(page), page.after) == ([7, 6, 5], None)


@pytest.mark.parametrize("backwards", [False, True])
async def test_a_page_holds_so_many_and_no_more(world: World, backwards: bool) -> None:
    """S76: more is refused."""
    with pytest.raises(ValueError, match="1000"):
        await read(world, backwards=backwards, limit=MAX_ENTRIES + 1)
    assert await read(world, backwards=backwards, limit=MAX_ENTRIES) == EntryPage((), None)


async def test_a_call_reads_so_much_and_says_where_to_go_on(world: World) -> None:
    """S51, S76: one entry of a tenant at each end of ten thousand of another is found by both directions."""
    mine, other = NewEntry(kind="k", tenant="acme"), NewEntry(kind="k", tenant="globex")
    await world.append("events", mine)
    for _ in range(MAX_ROWS_READ // MAX_ENTRIES):
        await world.append("events", *[other] * MAX_ENTRIES)
        await world.number("events")
    await world.append("events", other, mine)
    await world.number("events")
    await world.number("events")
    last = MAX_ROWS_READ + 3
    for backwards in (False, True):
        found = await world.numbered("events", backwards=backwards, scope=Scope("acme"))
        assert sorted(one.number for one in found) == [1, last]
