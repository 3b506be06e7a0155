"""Entries of the audit are sealed in their order, and leave a checkpoint when they go (S60)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
import pytest

from fairlane.duties.journals import seal_audit
from fairlane.model.instants import DAY, MINUTE, SECOND
from fairlane.model.journal.entries import Entry, NewEntry
from fairlane.model.journal.memory import AuditMemory, decode_memory
from fairlane.model.journal.sealing import Verifier
from fairlane.model.policy.overrides import SubjectKind
from fairlane.store.contract.journal import MAX_ENTRIES, PendingRequest
from tests.contract.world import World
from tests.duties.journals.crew import ALL, append, numbered, sealer, settle_down

KEY, OTHER = b"a key of some length", b"another key of that length"


async def act(world: World, number: int = 1) -> None:
    """Let an operator do something."""
    entries = [NewEntry(kind="queues.pause", subject=f"queue {one}") for one in range(number)]
    await append(world, *entries, journal="audit")


async def memory_of(world: World) -> AuditMemory:
    """Return what the duty remembers."""
    request = PendingRequest(scope=ALL, journal="audit", limit=0)
    memory = decode_memory((await world.store.journal.pending(request)).end.memory, AuditMemory)
    assert memory is not None
    return memory


async def problems(
    world: World, key: bytes | None, entries: Sequence[Entry] | None = None
) -> list[tuple[int, str]]:
    """Verify the audit, or what somebody has made of its entries; return what is wrong."""
    memory = await memory_of(world)
    verifier = Verifier(memory.checkpoint, key, memory.keyed_from or 1)
    known = await numbered(world, "audit") if entries is None else entries
    last = (await world.store.journal.pending(PendingRequest(scope=ALL, journal="audit", limit=0))).end.last
    found = [*verifier.begin(), *verifier.read(known), *verifier.end(last, memory.seal)]
    return [(one.number, one.problem) for one in found]


@pytest.mark.parametrize("key", [KEY, None])
async def test_what_operators_did_is_sealed_in_order(world: World, key: bytes | None) -> None:
    """Over several passes and leaders; with a key or without."""
    for number in (2, 1, 3):
        await act(world, number)
        assert await sealer(key=key)(world.store) == seal_audit.EVERY
    assert [one.number for one in await numbered(world, "audit")] == [1, 2, 3, 4, 5, 6]
    assert await problems(world, key) == []
    assert (await memory_of(world)).is_keyed is (key is not None)


async def test_an_operator_s_verb_is_sealed_as_it_was_appended(world: World) -> None:
    """With what it changed."""
    await world.pause(SubjectKind.QUEUE, "bulk")
    await act(world)
    await sealer(key=KEY)(world.store)
    assert await world.appended("audit") == []
    assert await problems(world, KEY) == []


async def test_a_changed_a_missing_and_a_moved_entry_are_found(world: World) -> None:
    """By whoever has the key; the one who changed it has not."""
    await act(world, 5)
    await sealer(key=KEY)(world.store)
    entries = await numbered(world, "audit")
    changed = msgspec.structs.replace(entries[2], entry=NewEntry(kind="queues.resume"))
    assert [one for one, _ in await problems(world, KEY, [*entries[:2], changed, *entries[3:]])] == [3]
    assert [one for one, _ in await problems(world, KEY, [*entries[:2], *entries[3:]])] == [3]
    assert [one for one, _ in await problems(world, KEY, entries[:4])] == [5]
    moved = [
        msgspec.structs.replace(one, number=number)
        for number, one in enumerate([entries[0], entries[2], entries[1], *entries[3:]], 1)
    ]
    assert [one for one, _ in await problems(world, KEY, moved)][:2] == [2, 3]
    assert [one for one, _ in await problems(world, OTHER)] == [1, 2, 3, 4, 5]


async def test_more_than_a_page_is_sealed_without_a_pause(world: World) -> None:
    """One chain."""
    await act(world, MAX_ENTRIES)
    await act(world, 1)
    duty = sealer(key=KEY)
    assert [await duty(world.store) for _ in range(2)] == [0, seal_audit.EVERY]
    assert len(await numbered(world, "audit", after=MAX_ENTRIES - 1)) == 2


@pytest.mark.parametrize("key", [None, OTHER])
async def test_a_process_without_the_key_leaves_the_chain_alone(
    world: World, key: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once, and shows no key; whoever has it seals what waits."""
    await act(world)
    await sealer(key=KEY)(world.store)
    await act(world)
    stranger = sealer(key=key)
    with caplog.at_level(logging.DEBUG, "fairlane"):
        assert [await stranger(world.store) for _ in range(2)] == [MINUTE, MINUTE]
    assert [one.__dict__["event"] for one in caplog.records] == ["audit_not_sealed"]
    assert OTHER.decode() not in caplog.text
    assert len(await numbered(world, "audit")) == 1
    await sealer(key=KEY)(world.store)
    assert await problems(world, KEY) == []


async def test_a_key_that_comes_later_seals_what_comes_later(world: World) -> None:
    """The entries of before keep their checksums, and all of it is verified."""
    await act(world, 2)
    await sealer()(world.store)
    await act(world, 2)
    await sealer(key=KEY)(world.store)
    assert (await memory_of(world)).keyed_from == 3
    assert await problems(world, KEY) == []
    entries = await numbered(world, "audit")
    forged = msgspec.structs.replace(entries[2], entry=NewEntry(kind="queues.resume"))
    assert [one for one, _ in await problems(world, KEY, [*entries[:2], forged, entries[3]])] == [3]


@pytest.mark.parametrize("key", [KEY, None])
async def test_old_entries_leave_a_checkpoint_from_which_the_rest_is_verified(
    world: World, key: bytes | None
) -> None:
    """A removed entry that is not old is still found."""
    await act(world, 3)
    await settle_down(world, sealer(key=key, keep=DAY))
    world.advance(DAY / SECOND)
    await act(world, 2)
    duty = sealer(key=key, keep=DAY)
    await settle_down(world, duty)
    assert [one.number for one in await numbered(world, "audit")] == [4, 5]
    assert await problems(world, key) == []
    entries = await numbered(world, "audit")
    assert [one for one, _ in await problems(world, key, entries[1:])] == [4]
    world.advance(2 * DAY / SECOND)
    await settle_down(world, duty)
    assert await numbered(world, "audit") == []
    assert await problems(world, key) == []


async def test_a_checkpoint_of_before_the_key_is_sealed_under_it(world: World) -> None:
    """So that only who has the key can move it."""
    await act(world, 2)
    await settle_down(world, sealer(keep=DAY))
    world.advance(DAY / SECOND + 1)
    await settle_down(world, sealer(keep=DAY))
    await act(world)
    await settle_down(world, sealer(key=KEY))
    assert await problems(world, KEY) == []
    assert [one for one, _ in await problems(world, OTHER)] == [2, 3]
