"""`app.audit`: reading, verifying and exporting what operators did."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fairlane import (
    Audit,
    AuditEntry,
    ConfigError,
    EntryNotFound,
    Fairlane,
    InsideTenant,
    SchemaTooNew,
    StoreBusy,
    TenantMismatch,
)
from fairlane.model.instants import to_datetime
from fairlane.model.journal.entries import NewEntry
from fairlane.model.journal.operations import Operation, entry_of
from tests.app.journals.conftest import KEY, Append, Lead
from tests.app.world import World


@pytest.fixture
def app(world: World) -> Fairlane:
    """An application that knows the key of the audit."""
    return world.app(config={"audit": {"key": KEY.decode()}})


def done(subject: str = "queue bulk", tenant: str | None = None, **values: Any) -> NewEntry:
    """Return what somebody did."""
    operation = Operation(**{"action": "queues.pause", "actor": "ann", "origin": "cli", **values})
    return entry_of(operation, subject, tenant, {"paused": None}, {"paused": {"who": "ann"}})


def subjects(found: Any) -> list[str]:
    """Return what entries are about."""
    return [one.subject for one in found]


def chain(world: World) -> Any:
    """Return the stored journal."""
    return world.oracle.journal._core.books.journals["audit"]


# ── reading ──────────────────────────────────────────────────────────────────


async def test_an_entry_says_who_did_what_where_why_and_what_changed(
    world: World, app: Fairlane, append: Append, seal: Lead
) -> None:
    """Sealed, it has a number."""
    at = to_datetime(world.clock.now())
    await append(done(note="moving", details={"until": 5}))
    (waiting,) = await app.audit.afind()
    assert (waiting.number, waiting.is_sealed, waiting.seal) == (None, False, "")
    await seal()
    (entry,) = await app.audit.afind()
    assert isinstance(entry, AuditEntry)
    assert (entry.number, entry.is_sealed, entry.at, entry.kind) == (1, True, at, "queues.pause")
    assert (entry.actor, entry.origin, entry.tenant, entry.subject) == ("ann", "cli", None, "queue bulk")
    assert (entry.note, entry.before, entry.after) == ("moving", {"paused": None}, {"paused": {"who": "ann"}})
    assert (entry.details, entry.count, len(entry.seal)) == ({"until": 5}, 1, 64)
    assert "moving" not in repr(entry)
    assert entry == await app.audit.aget(1)


async def test_the_newest_comes_first_also_across_what_is_not_sealed_yet(
    app: Fairlane, append: Append, seal: Lead
) -> None:
    """Page by page, each once."""
    await append(*(done(f"s{n}") for n in range(4)))
    await seal()
    await append(*(done(f"w{n}") for n in range(5)))
    expected = ["w4", "w3", "w2", "w1", "w0", "s3", "s2", "s1", "s0"]
    assert subjects(await app.audit.afind()) == expected
    for limit in (1, 2, 3, 5, 9):
        found: list[str] = []
        cursor = None
        while True:
            page = await app.audit.afind(limit=limit, cursor=cursor)
            assert len(page.items) <= limit
            found += subjects(page)
            cursor = page.cursor
            if cursor is None:
                break
        assert found == expected, limit


async def test_what_is_sealed_between_two_pages_is_neither_lost_nor_shown_as_unsealed(
    app: Fairlane, append: Append, seal: Lead
) -> None:
    """The second page begins where the sealed ones ended before."""
    await append(done("s0"))
    await seal()
    await append(*(done(f"w{n}") for n in range(3)))
    first = await app.audit.afind(limit=3)
    await seal()
    second = await app.audit.afind(limit=3, cursor=first.cursor)
    assert subjects(first) + subjects(second) == ["w2", "w1", "w0", "s0"]


async def test_every_filter_holds(world: World, app: Fairlane, append: Append, seal: Lead) -> None:
    """Sealed or not."""
    await append(done("a", "acme"), done("b", action="jobs.edit"))
    await seal()
    between = to_datetime(world.clock.now())
    await append(done("a", action="jobs.edit"), done("c", "globex"))

    async def found(**filters: Any) -> list[str]:
        return subjects(await app.audit.afind(**filters))

    assert await found(kind="jobs.edit") == ["a", "b"]
    assert await found(kind=["jobs.edit", "queues.pause"]) == ["c", "a", "b", "a"]
    assert await found(subject="a") == ["a", "a"]
    assert await found(tenant="acme") == ["a"]
    assert await found(since=between) == ["c", "a"]
    assert await found(until=between) == ["b", "a"]
    assert await found(kind="jobs.edit", since=between) == ["a"]


async def test_a_number_that_is_not_stored_is_not_found(app: Fairlane, append: Append, seal: Lead) -> None:
    """Nor is another tenant's."""
    await append(done("a", "acme"), done("b", "globex"))
    await seal()
    assert (await app.audit.aget(2)).subject == "b"
    with pytest.raises(EntryNotFound) as caught:
        await app.audit.aget(3)
    assert caught.value.number == 3
    with app.tenant("acme"):
        assert (await app.audit.aget(1)).subject == "a"
        with pytest.raises(EntryNotFound):
            await app.audit.aget(2)


async def test_inside_a_tenant_only_its_entries_are_visible(
    app: Fairlane, append: Append, seal: Lead
) -> None:
    """S9: those of all tenants are for operators, and so is the chain."""
    await append(done("a", "acme"), done("b", "globex"), done("c"))
    await seal()
    await append(done("d", "acme"), done("e"))
    with app.tenant("acme"):
        assert subjects(await app.audit.afind()) == ["d", "a"]
        assert await app.audit.aexport(io.StringIO()) == 2
        with pytest.raises(TenantMismatch):
            await app.audit.afind(tenant="globex")
        with pytest.raises(InsideTenant, match="the chain of the audit"):
            await app.audit.averify()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda audit: audit.find(limit=0), "limit is 0"),
        (lambda audit: audit.find(cursor="x"), "'x' is not a cursor"),
        (lambda audit: audit.find(cursor="unsealed-x"), "is not a cursor"),
        (lambda audit: audit.find(cursor=5), "a value of type int is not a cursor"),
        (lambda audit: audit.find(kind=[]), "kind names no kind"),
        (lambda audit: audit.find(kind=5), "kind: is of type int"),
        (lambda audit: audit.find(subject="\x00"), "subject: use at most 2,000"),
        (lambda audit: audit.find(since=5), "since: is of type int"),
        (lambda audit: audit.get(0), "number is 0"),
        (lambda audit: audit.export(5), "to: is of type int"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(app: Fairlane, call: Any, words: str) -> None:
    """Unknown filters are a TypeError."""
    with pytest.raises(ValueError, match=words):
        call(app.audit)
    wrong: Any = {"actor": "ann"}
    with pytest.raises(TypeError, match="'actor' is not a filter; there are kind, subject"):
        app.audit.find(**wrong)


# ── verifying ────────────────────────────────────────────────────────────────


async def test_a_chain_that_nobody_touched_is_intact(app: Fairlane, append: Append, seal: Lead) -> None:
    """What is not sealed yet is counted."""
    empty = await app.audit.averify()
    assert (empty.is_intact, empty.first, empty.last, empty.sealed, empty.is_keyed) == (True, 0, 0, 0, False)
    await append(*(done(f"s{n}") for n in range(4)))
    await seal()
    await append(done("later"))
    report = await app.audit.averify()
    assert report.is_intact
    assert (report.first, report.last, report.sealed, report.unsealed) == (1, 4, 4, 1)
    assert (report.is_keyed, report.keyed_from) == (True, 1)


def change(world: World, at: int) -> None:
    """Write another note into an entry."""
    entries = chain(world).entries
    entries[at] = replace(entries[at], entry=replace(entries[at].entry, body=b'{"actor":"nobody"}'))


def remove(world: World, at: int) -> None:
    """Delete an entry."""
    del chain(world).entries[at]


def swap(world: World, at: int) -> None:
    """Exchange the contents of two entries."""
    entries = chain(world).entries
    one, two = entries[at], entries[at + 1]
    entries[at] = replace(two, number=one.number)
    entries[at + 1] = replace(one, number=two.number)


CHANGED = "the entry was changed or moved, or was sealed with another key"


TAMPERED: list[tuple[Any, int, list[tuple[int, str]]]] = [
    (change, 1, [(2, CHANGED)]),
    (remove, 1, [(2, "entries 2 to 2 are missing")]),
    (remove, 0, [(1, "entries 1 to 1 are missing")]),
    (remove, 3, [(4, "entries 4 to 4 are missing")]),
    (swap, 1, [(2, CHANGED), (3, CHANGED), (4, CHANGED)]),
]


@pytest.mark.parametrize("tampered", TAMPERED)
async def test_what_was_changed_removed_or_moved_is_named(
    world: World, app: Fairlane, append: Append, seal: Lead, tampered: Any
) -> None:
    """By the number where it was found."""
    await append(*(done(f"s{n}") for n in range(4)))
    await seal()
    tamper, at, problems = tampered
    tamper(world, at)
    report = await app.audit.averify()
    assert not report.is_intact
    assert [(one.number, one.problem) for one in report.problems] == problems


async def test_without_a_key_it_is_a_checksum_and_says_so(world: World, append: Append, seal: Lead) -> None:
    """It finds accidents."""
    app = world.app()
    await append(done("a"), done("b"))
    await seal(key=None)
    report = await app.audit.averify()
    assert (report.is_intact, report.is_keyed, report.keyed_from) == (True, False, 0)
    change(world, 0)
    assert not (await app.audit.averify()).is_intact


async def test_a_key_that_came_later_is_known_from_its_first_entry(
    app: Fairlane, append: Append, seal: Lead
) -> None:
    """What was sealed before keeps its checksum."""
    await append(done("a"))
    await seal(key=None)
    await append(done("b"))
    await seal()
    report = await app.audit.averify()
    assert (report.is_intact, report.is_keyed, report.keyed_from) == (True, True, 2)


async def test_the_key_must_be_the_one_it_was_sealed_with(world: World, append: Append, seal: Lead) -> None:
    """Else every entry would look forged."""
    await append(done("a"))
    await seal()
    with pytest.raises(ConfigError, match=r"audit\.key: .*sealed under a key, and this process has none"):
        await world.app().audit.averify()
    other = world.app(config={"audit": {"key": "another key of so many bytes"}})
    with pytest.raises(ConfigError, match="sealed under another key"):
        await other.audit.averify()


async def test_what_was_removed_at_its_end_is_no_problem(
    world: World, app: Fairlane, append: Append, seal: Lead
) -> None:
    """The checkpoint says where the chain begins; what is put back before it is one."""
    await append(done("a"), done("b"))
    await seal()
    old = list(chain(world).entries)
    world.clock.advance(400 * 86_400)
    await append(done("c"))
    await seal()
    report = await app.audit.averify()
    assert (report.is_intact, report.first, report.last, report.sealed) == (True, 3, 3, 1)
    chain(world).entries = [*old, *chain(world).entries]
    assert [one.problem for one in (await app.audit.averify()).problems] == [
        "the entry is before the checkpoint, and should be gone"
    ] * 2


async def test_a_chain_that_is_trimmed_meanwhile_is_read_again(
    world: World, app: Fairlane, append: Append, seal: Lead, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few times; then it is to be tried later."""
    await append(done("a"), done("b"))
    await seal()
    world.clock.advance(400 * 86_400)
    await append(done("c"))
    read, trims = world.oracle.journal.entries, 1

    async def trimmed_after(request: Any) -> Any:
        nonlocal trims
        page = await read(request)
        if trims:
            trims -= 1
            await seal()
        return page

    monkeypatch.setattr(world.oracle.journal, "entries", trimmed_after)
    report = await app.audit.averify()
    assert (report.is_intact, report.first) == (True, 3)

    async def always(request: Any) -> Any:
        book = chain(world)
        memory = msgspec.msgpack.decode(book.memory)
        memory["checkpoint"]["number"] += 1
        book.memory = msgspec.msgpack.encode(memory)
        return await read(request)

    monkeypatch.setattr(world.oracle.journal, "entries", always)
    with pytest.raises(StoreBusy, match="verify it later"):
        await app.audit.averify()


async def test_a_newer_version_s_chain_is_left_to_it(
    world: World, app: Fairlane, append: Append, seal: Lead
) -> None:
    """It could only be misread."""
    await append(done("a"))
    await seal()
    chain(world).memory = msgspec.msgpack.encode(
        {**msgspec.msgpack.decode(chain(world).memory), "format": 99}
    )
    with pytest.raises(SchemaTooNew, match="a newer version of Fairlane seals this audit"):
        await app.audit.averify()


# ── export, plain callers ────────────────────────────────────────────────────


async def test_entries_are_exported_oldest_first_and_redacted(
    app: Fairlane, append: Append, seal: Lead, tmp_path: Path
) -> None:
    """What is not sealed yet comes last."""
    await append(done("a", note="password=hunter2xyz"), done("b"))
    await seal()
    await append(done("c"))
    file = tmp_path / "audit.jsonl"
    assert await app.audit.aexport(file) == 3
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(one["number"], one["subject"], one["is_sealed"]) for one in lines] == [
        (1, "a", True),
        (2, "b", True),
        (None, "c", False),
    ]
    assert lines[0]["note"] == "password=[redacted]"
    assert (len(lines[0]["seal"]), lines[2]["seal"]) == (64, None)


def test_plain_callers_read_the_same(world: World, app: Fairlane) -> None:
    """Each method has a twin."""
    app.queues.pause("bulk", reason="moving")
    (entry,) = app.audit.find(since=to_datetime(world.clock.now()) - timedelta(1))
    assert entry.kind == "queues.pause"
    assert app.audit.verify().unsealed == app.audit.export(io.StringIO()) == 1
    with pytest.raises(EntryNotFound):
        app.audit.get(1)
    public = {name for name in dir(Audit) if not name.startswith("_")}
    verbs = {name for name in public if f"a{name}" in public}
    assert public == verbs | {f"a{name}" for name in verbs}
