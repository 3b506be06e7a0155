"""Users, tokens, sessions and links as a store keeps them (S79, S80)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from fairlane.model.access import Role
from fairlane.model.access_records import (
    SEEN_EVERY,
    AccessKey,
    AccessRecord,
    AccessRow,
    LinkRecord,
    Secret,
    SessionRecord,
    TokenRecord,
    UserRecord,
)
from fairlane.model.instants import SECOND, Micros
from fairlane.model.journal.operations import Operation
from fairlane.model.scope import Scope
from fairlane.store.contract.access import (
    MAX_ACCESS_CHANGES,
    AccessChange,
    AccessFindRequest,
    AccessListRequest,
    AccessWriteRequest,
    SeenRequest,
)
from fairlane.store.contract.request import Request
from tests.contract.world import ALL, World

HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA"
ANN = UserRecord(name="ann", role=Role.OPERATOR, password_hash=HASH, created_by="root")
BOB = UserRecord(name="bob", role=Role.VIEWER, password_hash=HASH, tenant="acme", created_by="root")
OPERATION = Operation(action="users.set", actor="root", origin="cli", note="as agreed")


def token(text: str = "fl_1", **values: Any) -> TokenRecord:
    """Return a token that this secret opens."""
    kept = Secret.of(text)
    return TokenRecord(
        **{"id": kept.id, "secret_hash": kept.hash, "name": "ci", "role": Role.VIEWER, "created_by": "ann"}
        | values
    )


def link(text: str = "fl_2") -> LinkRecord:
    """Return a sign-in link."""
    kept = Secret.of(text)
    return LinkRecord(id=kept.id, secret_hash=kept.hash, name="setup", role=Role.ADMIN)


def session(text: str = "fl_3", name: str = "ann") -> SessionRecord:
    """Return a session of a user."""
    kept = Secret.of(text)
    return SessionRecord(
        id=kept.id, secret_hash=kept.hash, name=name, password_mark=ANN.password_mark, peer="::1"
    )


def put(record: AccessRecord, revision: int = 0, valid_for: Micros | None = None) -> AccessChange:
    """Return the change that makes or replaces a record."""
    return AccessChange(key=record.key, record=record, revision=revision, valid_for=valid_for)


def drop(row: AccessRow) -> AccessChange:
    """Return the change that removes a record."""
    return AccessChange(key=row.record.key, revision=row.revision)


async def write(world: World, *changes: AccessChange, operation: Operation | None = None) -> bool:
    """Change records."""
    request = AccessWriteRequest(scope=ALL, changes=changes, operation=operation)
    return await world.store.access.write(request)


async def find(world: World, *keys: AccessKey) -> list[AccessRow]:
    """Return the records that are there."""
    return list((await world.store.access.find(AccessFindRequest(scope=ALL, keys=keys))).rows)


async def row_of(world: World, record: AccessRecord) -> AccessRow:
    """Return a record that is there."""
    (row,) = await find(world, record.key)
    return row


async def names(world: World, **values: Any) -> list[str]:
    """Return the names of the records of a kind."""
    request = AccessListRequest(scope=ALL, **{"kind": "user"} | values)
    return [row.record.key.name for row in (await world.store.access.list(request)).rows]


async def seen(world: World, *keys: AccessKey) -> None:
    """Note that these are used."""
    await world.store.access.note_seen(SeenRequest(scope=ALL, keys=keys))


async def clean(world: World) -> int:
    """Delete what has expired."""
    return await world.store.access.clean(Request(scope=ALL))


async def test_a_record_is_kept_as_it_was_given(world: World) -> None:
    """S79: every kind, with the store's instants, found by its key and in the order of the keys."""
    kept: list[AccessRecord] = [ANN, BOB, token(tenant="acme"), session(), link()]
    at = world.now
    assert await write(world, *(put(record, valid_for=9 * SECOND) for record in kept))
    rows = await find(world, *(record.key for record in reversed(kept)))
    assert [row.record for row in rows] == kept[::-1]
    assert {(row.created_at, row.seen_at, row.expires_at) for row in rows} == {(at, None, at + 9 * SECOND)}
    assert all(row.revision > 0 for row in rows)
    reply = await world.store.access.find(AccessFindRequest(scope=ALL, keys=()))
    assert (reply.rows, reply.now) == ((), world.now)


async def test_a_record_that_is_there_cannot_be_made_again(world: World) -> None:
    """S79: not even an equal one; and what is not there cannot be changed or removed."""
    assert await write(world, put(ANN))
    assert not await write(world, put(ANN))
    assert not await write(world, put(BOB, revision=1))
    assert not await write(world, AccessChange(key=BOB.key, revision=1))
    assert [row.record for row in await find(world, ANN.key, BOB.key)] == [ANN]


async def test_a_change_needs_the_revision_that_was_read(world: World) -> None:
    """S79: a second change with the same revision is refused; the first instant stays, the revision rises."""
    await write(world, put(ANN))
    before = await row_of(world, ANN)
    world.advance(1)
    admin = msgspec.structs.replace(ANN, role=Role.ADMIN)
    assert await write(world, put(admin, before.revision))
    after = await row_of(world, ANN)
    assert (after.record, after.created_at) == (admin, before.created_at)
    assert after.revision > before.revision
    assert not await write(world, put(ANN, before.revision))
    assert not await write(world, drop(before))
    assert await row_of(world, ANN) == after


async def test_of_several_changes_all_are_made_or_none(world: World) -> None:
    """S79: one that is refused refuses all, also in the audit."""
    await write(world, put(ANN), put(link()))
    ann, kept = await row_of(world, ANN), await row_of(world, link())
    assert not await write(world, drop(kept), put(session()), put(BOB, revision=1), operation=OPERATION)
    assert await find(world, ANN.key, link().key, session().key, BOB.key) == [ann, kept]
    assert await world.appended("audit") == []
    assert await write(world, drop(kept), put(session()), operation=OPERATION)
    assert [row.record for row in await find(world, link().key, session().key)] == [session()]


async def test_of_many_who_use_a_link_at_once_one_does(world: World) -> None:
    """S80: each would make a session of its own; the link is used once, on whatever connection."""
    await write(world, put(link()))
    kept = await row_of(world, link())
    sessions = [session(f"fl_{number}") for number in range(10, 18)]
    done = await asyncio.gather(*(write(world, drop(kept), put(one)) for one in sessions))
    assert done.count(True) == 1
    winner = sessions[done.index(True)]
    assert [row.record for row in await find(world, *(one.key for one in sessions), link().key)] == [winner]


async def test_of_many_who_make_the_same_user_at_once_one_does(world: World) -> None:
    """S79: there is no row yet that could be locked."""
    users = [msgspec.structs.replace(ANN, created_by=f"admin {number}") for number in range(8)]
    done = await asyncio.gather(*(write(world, put(user)) for user in users))
    assert done.count(True) == 1
    assert (await row_of(world, ANN)).record == users[done.index(True)]


async def test_many_who_write_several_records_do_not_wait_for_each_other(world: World) -> None:
    """S79: whatever the order in which they name them."""
    await write(world, put(ANN), put(BOB))
    ann, bob = await row_of(world, ANN), await row_of(world, BOB)
    changes = (put(ANN, ann.revision), put(BOB, bob.revision))
    done = await asyncio.gather(*(write(world, *(changes if n % 2 else changes[::-1])) for n in range(8)))
    assert done.count(True) == 1


async def test_what_has_expired_is_not_there(world: World) -> None:
    """S80: by the store's clock; it is not found, not listed, not changed, and its place is free."""
    await write(world, put(token(), valid_for=5 * SECOND), put(ANN))
    kept = await row_of(world, token())
    world.advance(5 - 1 / SECOND)
    assert await find(world, token().key) == [kept]
    assert await names(world, kind="token") == [token().id]
    world.advance(1 / SECOND)
    assert await find(world, token().key, ANN.key) == [await row_of(world, ANN)]
    assert await names(world, kind="token") == []
    assert not await write(world, put(token(name="later"), kept.revision))
    assert not await write(world, drop(kept))
    await seen(world, token().key)
    assert await write(world, put(token(name="anew"), valid_for=SECOND))
    row = await row_of(world, token())
    assert (row.record, row.created_at, row.seen_at) == (token(name="anew"), world.now, None)
    assert row.revision > kept.revision


async def test_what_was_removed_and_made_again_has_another_revision(world: World) -> None:
    """S79: so that a change which was meant for the one before is refused."""
    await write(world, put(ANN))
    before = await row_of(world, ANN)
    assert await write(world, drop(before))
    assert await find(world, ANN.key) == []
    world.advance(1)
    assert await write(world, put(ANN))
    assert (await row_of(world, ANN)).revision > before.revision
    assert not await write(world, drop(before))


async def test_records_are_listed_by_name_in_pages(world: World) -> None:
    """S79: each kind for itself, byte by byte."""
    known = ["Zoe", "ann", "ann2", "bob", "zoë"]
    users = [msgspec.structs.replace(ANN, name=name) for name in reversed(known)]
    await write(world, *map(put, users), put(token()))
    assert await names(world) == known
    assert await names(world, limit=2) == known[:2]
    assert await names(world, limit=2, after="ann") == known[2:4]
    assert await names(world, after="zoë") == []
    assert await names(world, kind="session") == []
    with pytest.raises(ValueError, match="a page holds at most"):
        await names(world, limit=1_001)


async def test_the_last_use_is_noted_once_a_minute(world: World) -> None:
    """S80: a change of the record keeps it, and noting it is no change."""
    await write(world, put(token()), put(ANN))
    before = await row_of(world, token())
    await seen(world, token().key, AccessKey("token", "unknown"))
    first = world.now
    assert await row_of(world, token()) == msgspec.structs.replace(before, seen_at=first)
    world.advance((SEEN_EVERY - 1) / SECOND)
    await seen(world, token().key)
    assert (await row_of(world, token())).seen_at == first
    world.advance(1 / SECOND)
    await seen(world, token().key)
    row = await row_of(world, token())
    assert (row.seen_at, row.revision) == (world.now, before.revision)
    assert (await row_of(world, ANN)).seen_at is None
    assert await write(world, put(token(name="other"), row.revision))
    assert (await row_of(world, token())).seen_at == row.seen_at


async def test_what_has_expired_is_deleted_and_nothing_else(world: World) -> None:
    """S80: a duty does it."""
    await write(
        world, put(ANN), put(token("fl_a"), valid_for=SECOND), put(token("fl_b"), valid_for=2 * SECOND)
    )
    world.advance(1)
    assert await clean(world) == 1
    assert await clean(world) == 0
    assert await names(world, kind="token") == [token("fl_b").id]
    assert await names(world) == ["ann"]


async def test_the_audit_tells_what_was_changed_and_no_hash(world: World) -> None:
    """S60, S79: in the same step; who is bound to a tenant is that tenant's business too."""
    await write(world, put(BOB), put(token()), put(session()), operation=OPERATION)
    made = {entry.subject: entry for entry in await world.appended("audit")}
    assert made.keys() == {"user bob", f"token {token().id}", f"session {session().id}"}
    assert (made["user bob"].kind, made["user bob"].tenant) == ("users.set", "acme")
    assert made[f"token {token().id}"].tenant is None
    assert msgspec.json.decode(made["user bob"].body) == {
        "actor": "root",
        "origin": "cli",
        "note": "as agreed",
        "after": {"role": "viewer", "tenant": "acme", "disabled": False},
    }
    row = await row_of(world, BOB)
    new = msgspec.structs.replace(BOB, role=Role.MANAGER, grants=("limits.set",), password_hash=HASH[:-1])
    await write(world, put(new, row.revision), operation=OPERATION)
    changed = (await world.appended("audit"))[-1]
    assert msgspec.json.decode(changed.body)["before"] == {"role": "viewer"}
    assert msgspec.json.decode(changed.body)["after"] == {
        "role": "manager",
        "grants": ["limits.set"],
        "password": "changed",
    }
    await write(world, drop(await row_of(world, BOB)), operation=OPERATION)
    gone = msgspec.json.decode((await world.appended("audit"))[-1].body)
    assert gone["before"]["role"] == "manager"
    assert "after" not in gone
    told = repr(await world.appended("audit"))
    assert [
        one for one in (HASH[:-1], token().secret_hash.hex(), repr(token().secret_hash)) if one in told
    ] == []


async def test_a_user_who_moves_between_tenants_is_neithers_business(world: World) -> None:
    """S9, S60: an entry names both tenants, so neither sees it."""
    await write(world, put(BOB))
    row = await row_of(world, BOB)
    moved = msgspec.structs.replace(BOB, tenant="globex")
    await write(world, put(moved, row.revision), operation=OPERATION)
    (entry,) = await world.appended("audit")
    assert entry.tenant is None
    assert await world.appended("audit", Scope("acme")) == []


async def test_what_changes_nothing_leaves_nothing_in_the_audit(world: World) -> None:
    """S60: also the same record again, and what no operator has asked for."""
    await write(world, put(ANN))
    row = await row_of(world, ANN)
    assert await write(world, put(ANN, row.revision), operation=OPERATION)
    assert await world.appended("audit") == []


@pytest.mark.parametrize("kept", [ANN, token(), session(), link()])
def test_no_record_shows_its_hash(kept: AccessRecord) -> None:
    """S80: in no text that a log or a traceback may have."""
    told = [repr(kept), str(kept), f"{AccessRow(kept, 1, 0)}", repr(put(kept)), repr(Secret.of("fl_1"))]
    secret = getattr(kept, "secret_hash", b"\x00\x01")
    for text in told:
        assert HASH not in text
        assert repr(secret) not in text
        assert secret.hex() not in text


def test_requests_that_make_no_sense_are_refused() -> None:
    """S79: before a store is asked."""
    with pytest.raises(ValueError, match="cannot be kept as"):
        AccessChange(key=ANN.key, record=BOB)
    with pytest.raises(ValueError, match="cannot be removed"):
        AccessChange(key=ANN.key)
    with pytest.raises(ValueError, match="changes a record once"):
        AccessWriteRequest(scope=ALL, changes=(put(ANN), put(ANN)))
    many = tuple(put(token(f"fl_{number}")) for number in range(MAX_ACCESS_CHANGES + 1))
    with pytest.raises(ValueError, match="at most 100"):
        AccessWriteRequest(scope=ALL, changes=many)
