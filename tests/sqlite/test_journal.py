"""What SQLite promises of the journals beyond the contract: places, indexes, transactions (S60, S76)."""

from __future__ import annotations

from typing import Any, Final

import apsw
import pytest

from fairlane.model.journal.entries import NewEntry
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.contract.jobs import EnqueueRequest
from fairlane.store.contract.journal import AppendRequest, EntriesRequest, NumberRequest, PendingRequest
from fairlane.store.contract.request import MAX_PAGE_SIZE, MAX_ROWS_READ
from fairlane.store.sqlite.journal import read_entries
from fairlane.store.sqlite.statements import load
from fairlane.store.sqlite.store import SqliteStore
from fairlane.store.sqlite.transaction import Transaction
from tests.contract.world import ALL, OPERATION, World, ruined


async def append(world: World, number: int, **values: Any) -> None:
    """Append so many entries to the events."""
    entries = tuple(NewEntry(**{"kind": "queue_full", **values}) for _ in range(number))
    await world.store.journal.append(AppendRequest(scope=ALL, journal="events", entries=entries))


# ── the application's own transaction ────────────────────────────────────────


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
async def test_entries_of_an_enqueue_share_the_applications_transaction(
    world: World, own: apsw.Connection, ending: str
) -> None:
    """S60, S76: who enqueued, and that a limit was exceeded, is known if and only if the jobs are."""
    rules = QueueRules(limits=Limits(waiting=1, on_full="warn"))
    await world.put({Subject(SubjectKind.QUEUE, "default"): rules})
    own.execute("BEGIN")
    request = EnqueueRequest(scope=ALL, jobs=(world.new(), world.new()), operation=OPERATION)
    await world.store.jobs.enqueue_in(own, request)
    assert await world.appended("audit") == []
    own.execute(ending)
    is_there = ending == "COMMIT"
    assert [one.kind for one in await world.appended("audit")] == ["tests.steer"] * 2 * is_there
    assert [one.kind for one in await world.appended("events")] == ["job_limit_warning"] * is_there


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
async def test_a_death_in_the_applications_transaction_is_told_by_its_commit(
    world: World, own: apsw.Connection, ending: str
) -> None:
    """S76: the event and the letter come together, or neither does."""
    await world.enqueue()
    claim = await world.claim_one()
    own.execute("BEGIN")
    settlements = (world.verdict(claim, ruined()),)
    request = SettleRequest(scope=ALL, worker="w1", settlements=settlements)
    await world.store.claims.settle_in(own, request)
    own.execute(ending)
    assert len(await world.letters()) == len(await world.appended("events")) == (ending == "COMMIT")


# ── places ───────────────────────────────────────────────────────────────────


async def test_no_place_is_used_twice(world: World) -> None:
    """A duty that asks for an entry by its place never gets a later one."""
    await append(world, 1)
    pending = PendingRequest(scope=ALL, journal="events")
    first = await world.store.journal.pending(pending)
    await world.number("events")
    await append(world, 1)
    second = await world.store.journal.pending(pending)
    assert second.entries[0].place > first.entries[0].place
    taken = tuple(one.place for one in first.entries)
    request = NumberRequest(
        scope=ALL, journal="events", revision=second.end.revision, taken=taken, entries=(), memory=b""
    )
    assert not await world.store.journal.number(request)


# ── reading ──────────────────────────────────────────────────────────────────

WALKS: Final[list[tuple[dict[str, Any], str]]] = [
    ({}, "PRIMARY KEY (journal=?"),
    ({"kinds": frozenset({"a"}), "since": 5, "until": 9}, "PRIMARY KEY (journal=?"),
    ({"subject": "queue bulk"}, "INDEX entry_subject (journal=? AND subject=?"),
    ({"scope": Scope("acme")}, "INDEX entry_tenant (journal=? AND tenant=?"),
    ({"scope": Scope("acme"), "subject": "x"}, "INDEX entry_tenant (journal=? AND tenant=?"),
]
"""Filters, and the index that answers them."""


@pytest.mark.parametrize(("filters", "index"), WALKS, ids=str)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", ["edge", "entries"])
async def test_entries_are_read_in_the_order_of_an_index(
    world: World, filters: dict[str, Any], index: str, backwards: bool, name: str
) -> None:
    """No call reads all entries, and none sorts them; how far a tenant's call gets depends on its own."""
    request = EntriesRequest(**{"scope": ALL, **filters}, journal="audit", backwards=backwards)

    def explain(tx: Transaction) -> list[tuple[Any, ...]]:
        return read_entries(tx, f"EXPLAIN QUERY PLAN {getattr(load('journal'), name)}", request, limit=50)

    assert isinstance(world.store, SqliteStore)
    plan = [row[3] for row in await world.store._reader.run(explain)]
    assert plan[0].startswith("SEARCH entry USING ")
    assert plan[0].endswith(f"{index} AND number>? AND number<?)")
    assert not [step for step in plan if "ORDER BY" in step]


@pytest.mark.parametrize("backwards", [False, True])
async def test_a_page_of_few_entries_is_short_and_says_where_to_continue(
    world: World, backwards: bool
) -> None:
    """S76: a call reads 10,000 entries, and those that match may be behind them."""
    if backwards:
        await append(world, 1, kind="worker_lost")
    for _ in range(MAX_ROWS_READ // MAX_PAGE_SIZE):
        await append(world, MAX_PAGE_SIZE)
    if not backwards:
        await append(world, 1, kind="worker_lost")
    while await world.number("events"):
        pass
    request = EntriesRequest(
        scope=ALL, journal="events", kinds=frozenset({"worker_lost"}), backwards=backwards
    )
    page = await world.store.journal.entries(request)
    assert page.entries == ()
    assert page.after == (2 if backwards else MAX_ROWS_READ)
    request = EntriesRequest(
        scope=ALL, journal="events", kinds=request.kinds, backwards=backwards, after=page.after
    )
    page = await world.store.journal.entries(request)
    assert [one.entry.kind for one in page.entries] == ["worker_lost"]
