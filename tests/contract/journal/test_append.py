"""Entries are appended to a journal and wait there for a number (S60, S76)."""

from __future__ import annotations

import asyncio
from typing import Final, get_args

import pytest

from fairlane.model.errors import TenantMismatch
from fairlane.model.journal.entries import JournalName, NewEntry
from fairlane.model.scope import Scope
from fairlane.store.contract.journal import MAX_ENTRIES, JournalEnd, PendingReply
from tests.contract.world import World

JOURNALS: Final[tuple[JournalName, ...]] = get_args(JournalName)

ENTRIES: Final = (
    NewEntry(kind="plain"),
    NewEntry(
        kind="job_stuck",
        tenant="acme",
        subject="zoë 'x' \"y\" \\ {}",
        count=1_000_000,
        body='{"a":"é\\u0000","n":1.0}'.encode(),
    ),
    NewEntry(kind="unknown.to-us", tenant="globex", subject="a" * 255, body=b'["%s"]' % (b"x" * 9_000)),
    NewEntry(kind="plain"),
)


@pytest.mark.parametrize("journal", JOURNALS)
async def test_entries_wait_as_they_were_appended(world: World, journal: JournalName) -> None:
    """S1, S60, S76: byte for byte, in their order, at the store's now; places only rise."""
    assert await world.pending(journal) == PendingReply((), JournalEnd(), world.now)
    first_at = world.now
    await world.append(journal, *ENTRIES[:2])
    second_at = world.advance(1)
    await world.append(journal, *ENTRIES[2:])
    reply = await world.pending(journal)
    assert tuple(one.entry for one in reply.entries) == ENTRIES
    assert [one.at for one in reply.entries] == [first_at, first_at, second_at, second_at]
    places = [one.place for one in reply.entries]
    assert places == sorted(set(places))
    assert (reply.end, reply.now) == (JournalEnd(), second_at)


async def test_the_journals_know_nothing_of_each_other(world: World) -> None:
    """S60, S76: an entry is in one of them."""
    await world.append("audit", ENTRIES[0])
    await world.append("events", ENTRIES[1])
    assert await world.appended("audit") == [ENTRIES[0]]
    assert await world.appended("events") == [ENTRIES[1]]


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 5])
async def test_as_many_are_returned_as_asked_for_oldest_first(world: World, limit: int) -> None:
    """S76: the others stay; a limit of 0 returns the end alone."""
    await world.append("events", *ENTRIES)
    reply = await world.pending("events", limit)
    assert tuple(one.entry for one in reply.entries) == ENTRIES[:limit]
    assert reply.end == JournalEnd()


async def test_a_request_holds_so_many_and_no_more(world: World) -> None:
    """S76: one more is refused, and none is appended; none at all is no error."""
    many = [NewEntry(kind="many", subject=f"{number}") for number in range(MAX_ENTRIES + 1)]
    with pytest.raises(ValueError, match="at most 1000 entries, not 1001"):
        await world.append("events", *many)
    with pytest.raises(ValueError, match="1000"):
        await world.pending("events", MAX_ENTRIES + 1)
    await world.append("events")
    assert await world.appended("events") == []
    await world.append("events", *many[1:])
    assert await world.appended("events") == many[1:]


async def test_what_many_append_at_once_is_all_there(world: World) -> None:
    """S60: nobody waits for another, and the entries of one stay in their order."""
    batches = [[NewEntry(kind=f"by{n}", subject=f"{i}") for i in range(5)] for n in range(8)]
    await asyncio.gather(*(world.append("audit", *batch) for batch in batches))
    found = await world.appended("audit")
    assert len(found) == 40
    for batch in batches:
        assert [one for one in found if one.kind == batch[0].kind] == batch


async def test_a_tenant_appends_its_own_entries_and_no_others(world: World) -> None:
    """S9, S76: one that is another's, or nobody's, refuses them all."""
    mine = NewEntry(kind="mine", tenant="acme")
    for other in (NewEntry(kind="x", tenant="globex"), NewEntry(kind="x"), NewEntry(kind="x", tenant="*")):
        with pytest.raises(TenantMismatch):
            await world.append("events", mine, other, scope=Scope("acme"))
    assert await world.appended("events") == []
    await world.append("events", mine, scope=Scope("acme"))
    assert await world.appended("events") == [mine]


async def test_a_tenant_sees_its_own_entries_and_not_what_the_duty_remembers(world: World) -> None:
    """S9, S76: those of all tenants are not a tenant's; where the journal ends is no secret."""
    await world.append("events", *ENTRIES)
    await world.number("events", 1, memory=b"cursors of all")
    for tenant, seen in (("acme", [ENTRIES[1]]), ("globex", [ENTRIES[2]]), ("initech", [])):
        reply = await world.pending("events", scope=Scope(tenant))
        assert [one.entry for one in reply.entries] == seen
        assert reply.end == JournalEnd(1, 1, 1)
    assert (await world.pending("events")).end == JournalEnd(1, 1, 1, b"cursors of all")


async def test_a_limit_counts_the_scopes_own_entries(world: World) -> None:
    """S9: many of another tenant hide none."""
    await world.append("events", *[NewEntry(kind="x", tenant="globex")] * 20)
    await world.append("events", ENTRIES[1])
    reply = await world.pending("events", 1, scope=Scope("acme"))
    assert [one.entry for one in reply.entries] == [ENTRIES[1]]
