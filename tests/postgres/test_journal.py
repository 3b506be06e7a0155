"""Entries of open transactions: numbered once committed, gone with a rollback, in nobody's way (S60, S76)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import psycopg
import pytest

from fairlane.model.failure import ErrorClass
from fairlane.model.job import JobRecord
from fairlane.model.journal.entries import JournalName, NewEntry
from fairlane.model.journal.facts import deaths
from fairlane.model.journal.kinds import EventKind
from fairlane.model.journal.operations import Operation
from fairlane.model.lifecycle.states import State
from fairlane.model.policy.limits import Limits
from fairlane.model.policy.overrides import QueueRules, Subject, SubjectKind
from fairlane.model.retry.decision import AttemptResult
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.contract.jobs import EnqueueRequest, StopRequest
from fairlane.store.contract.journal import EntriesRequest
from fairlane.store.postgres.journal import append_entries
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World, failed, ruined
from tests.postgres.own import KINDS, Own

DEFAULT: Final = Subject(SubjectKind.QUEUE, "default")
ANN: Final = Operation(action="jobs.enqueue", actor="ann", origin="cli")
WARNED: Final = EventKind.JOB_LIMIT_WARNING.value
DIED: Final = EventKind.DEAD_LETTER.value


@pytest.fixture(params=KINDS)
async def own(request: pytest.FixtureRequest) -> AsyncIterator[Own]:
    """The application's own connection, of each kind."""
    async with KINDS[request.param]() as own:
        yield own


async def kinds(world: World, journal: JournalName = "events") -> list[str]:
    """Return the kinds of what waits for a number."""
    return [entry.kind for entry in await world.appended(journal)]


async def warn_above(world: World, waiting: int) -> None:
    """Let more than so many jobs of a tenant wait with a warning."""
    await world.put({DEFAULT: QueueRules(limits=Limits(waiting=waiting, on_full="warn"))})


async def send_in(world: World, own: Own, jobs: int, operation: Operation | None = None) -> None:
    """Enqueue jobs in the transaction of a connection."""
    made = tuple(world.new(created_by="ann") for _ in range(jobs))
    request = EnqueueRequest(scope=ALL, jobs=made, operation=operation)
    assert not (await world.store.jobs.enqueue_in(own.connection, request)).refused


async def die_in(world: World, own: Own) -> JobRecord:
    """Let a job die in the transaction of a connection; return it as it was."""
    await world.enqueue(created_by="zoë")
    claim = await world.claim_one()
    request = SettleRequest(scope=ALL, worker="w1", settlements=(world.verdict(claim, ruined()),))
    reply = await world.store.claims.settle_in(own.connection, request)
    assert [one.state for one in reply.settled] == [State.DEAD]
    return claim.job


# ── the application's commit decides ─────────────────────────────────────────


@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "rolled back"])
async def test_an_entry_is_there_if_the_applications_transaction_is(
    world: World, own: Own, is_committed: bool
) -> None:
    """S60, S76: a warning, a death and what an operator has made, on every kind of connection."""
    await warn_above(world, 1)
    await own.begin()
    dead = await die_in(world, own)
    await send_in(world, own, 3)
    await send_in(world, own, 1, ANN)
    assert (await kinds(world), await kinds(world, "audit")) == ([], [])
    await (own.commit() if is_committed else own.rollback())
    if not is_committed:
        assert (await kinds(world), await kinds(world, "audit")) == ([], [])
        return
    entries = await world.appended("events")
    assert [(one.kind, one.count) for one in entries] == [(DIED, 1), (WARNED, 2), (WARNED, 1)]
    assert entries[0] == deaths([await world.get(dead.id)])[0]
    about = msgspec.json.decode(entries[1].body)
    assert about == {"queue": "default", "waiting": 3, "limit": 1, "created_by": "ann"}
    (made,) = await world.appended("audit")
    assert (made.kind, made.tenant) == ("jobs.enqueue", "acme")


async def test_a_savepoint_takes_back_its_entries_alone(world: World, own: Own) -> None:
    """S76: what the transaction has done before stays."""
    await warn_above(world, 0)
    await own.begin()
    await send_in(world, own, 1)
    await own.run("SAVEPOINT before")
    await send_in(world, own, 2)
    await own.run("ROLLBACK TO SAVEPOINT before")
    await own.commit()
    assert [entry.count for entry in await world.appended("events")] == [1]


# ── late commits ─────────────────────────────────────────────────────────────


async def test_an_entry_that_is_committed_late_is_numbered_later_and_read_by_every_cursor(
    world: World,
) -> None:
    """S76: its place is lower than those of entries that have their numbers long since."""
    await warn_above(world, 0)
    async with KINDS["psycopg"]() as own:
        await own.begin()
        await send_in(world, own, 1)
        places = []
        for number in range(1, 4):
            world.advance(1)
            await world.append("events", NewEntry(kind="quick", subject=f"{number}"))
            places += [one.place for one in (await world.pending("events")).entries]
            (entry,) = await world.number("events")
            assert (entry.number, entry.entry.subject) == (number, f"{number}")
        page = await world.store.journal.entries(EntriesRequest(scope=ALL, journal="events"))
        assert (len(page.entries), page.after) == (3, 3)
        await own.commit()
    (late,) = (await world.pending("events")).entries
    assert late.place < min(places)
    assert late.entry.kind == WARNED
    await world.append("events", NewEntry(kind="quick"))
    assert [one.number for one in await world.number("events")] == [4, 5]
    rest = EntriesRequest(scope=ALL, journal="events", after=page.after or 0)
    found = (await world.store.journal.entries(rest)).entries
    assert [(one.number, one.entry.kind) for one in found] == [(4, WARNED), (5, "quick")]


async def test_entries_of_many_open_transactions_are_all_numbered_once(world: World) -> None:
    """S60, S76: whatever the order of their commits, while two duties number what they see."""
    store = world.store
    assert isinstance(store, PostgresStore)
    server = store._server
    await server.expect(8)

    async def append(turn: int) -> None:
        async with server.transaction() as connection:
            for part in range(2):
                entry = NewEntry(kind="k", subject=f"{turn}.{part}")
                await append_entries(connection, server.schema, None, "audit", [entry])
                await connection.fetch("SELECT 1")

    async def number() -> None:
        while len(await world.numbered("audit")) < 2 * 40:
            try:
                await world.number("audit", most=7)
            except AssertionError:
                continue  # the other one was faster

    async with asyncio.timeout(60):
        await asyncio.gather(number(), number(), *map(append, range(40)))
    entries = await world.numbered("audit")
    assert [one.number for one in entries] == list(range(1, 81))
    assert {one.entry.subject for one in entries} == {f"{n}.{part}" for n in range(40) for part in range(2)}
    assert (await world.pending("audit")).entries == ()


# ── nobody waits ─────────────────────────────────────────────────────────────


async def test_while_a_duty_numbers_nobody_waits_for_it(
    world: World, schema: str, admin: psycopg.Connection
) -> None:
    """S60, S76: enqueue, settle, operators and readers go on: who waits for a lock is told after 5 s."""
    await warn_above(world, 0)
    dead = await world.bring_to(State.DEAD)
    await world.append("events", NewEntry(kind="k"))
    with admin.transaction():
        admin.execute(f"SELECT {schema}.lock_journal('events'), {schema}.lock_journal('audit')".encode())
        await world.enqueue_many(2)
        await world.run(ruined())
        stop = StopRequest(scope=ALL, ids=((await world.enqueue()).id,), operation=ANN)
        await world.store.jobs.cancel(stop)
        assert (await world.review("resolve", dead.job.id, operation=ANN))[0].answer == "done"
        await world.append("audit", NewEntry(kind="k"))
        assert len(await world.appended("events")) == 7
        assert [entry.kind for entry in await world.appended("audit")] == ["jobs.enqueue"] * 2 + ["k"]
    assert len(await world.number("events")) == 7


async def test_while_a_transaction_with_entries_is_open_nobody_waits_for_it(world: World) -> None:
    """S60, S76: neither who appends of the same kind and subject, nor the duty."""
    await warn_above(world, 0)
    async with KINDS["psycopg"]() as own:
        await own.begin()
        await send_in(world, own, 1)
        await world.enqueue()
        assert [one.entry.kind for one in await world.number("events")] == [WARNED]
        await own.rollback()
    assert await world.appended("events") == []


# ── what a death says ────────────────────────────────────────────────────────


async def test_the_server_writes_deaths_as_the_model_does(world: World) -> None:
    """S76: byte for byte, also what JSON must escape; one entry for each cause, with the first job."""
    names = ("zoë", 'a "quoted" \\ one', "line\nfeed\ttab", "\x01\x1f\x7f", "\u2028</script>", "𝒳", "")
    ends: list[AttemptResult] = [
        ruined(ErrorClass.BUDGET, "1"),
        ruined(ErrorClass.STUCK, "2"),
        failed(message="three"),
    ]
    for number in range(21):
        tenant = f"t{number % 2}"
        await world.enqueue(tenant, task=f"task-{number % 3}", created_by=names[number % 7], max_attempts=1)
    claims = await world.claim(21)
    await world.settle_reply(*(world.verdict(one, ends[n % 3]) for n, one in enumerate(claims)))
    dead = [letter.job for letter in await world.letters()]
    condemned = await world.enqueue("t1", created_by=None)
    await world.condemn(condemned.id, reason="no: good")
    expected = deaths(dead) + deaths([await world.get(condemned.id)])
    assert len(dead) == 21
    assert sorted(await world.appended("events"), key=repr) == sorted(expected, key=repr)
