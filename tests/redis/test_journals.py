"""Journals are streams: scripts append what they do, and nothing for a job that goes well (S60, S76)."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from redis import Redis

from fairlane.model.errors import StoreUnavailable
from fairlane.model.journal.facts import deaths
from fairlane.model.lifecycle.states import State
from fairlane.model.scope import Scope
from fairlane.store.contract.journal import NumberRequest
from tests.contract.world import ALL, World, failed, ruined
from tests.redis.test_keys import JOURNALS, kinds
from tests.redis.test_letters import NOTED
from tests.redis.test_scripts import calls
from tests.servers.valkey import ValkeyServer


async def test_jobs_that_go_well_leave_nothing_in_journals_and_letters(world: World, client: Redis) -> None:
    """S76: also if they fail in between, or are handed back."""
    await world.enqueue_many(3)
    await world.run(failed())
    world.advance(60)
    for _ in range(3):
        assert (await world.run()).state is State.SUCCEEDED
    assert kinds(client.keys()) & {*JOURNALS, *NOTED} == set()


async def test_deaths_of_one_script_are_one_event_and_few_commands(world: World, client: Redis) -> None:
    """S76: forty jobs that die of one cause cost what forty that succeed do, and a letter each."""
    await world.enqueue_many(120)
    await world.settle_reply(*map(world.verdict, await world.claim(40)))  # so that the server has the scripts
    done = []
    for ending in (None, ruined()):
        claims = await world.claim(40)
        verdicts = [world.verdict(claim, *([ending] if ending else ())) for claim in claims]
        before = calls(client)
        await world.settle_reply(*verdicts)
        done.append(calls(client) - before)
    dead = [letter.job for letter in await world.letters()]
    assert await world.appended("events") == list(deaths(dead))
    assert len(dead) == 40
    assert done[1] - done[0] <= 8


async def test_deaths_of_two_tenants_are_two_events(world: World) -> None:
    """S9, S76: though one script ended them, of one task and one cause."""
    jobs = [await world.enqueue(tenant) for tenant in ("acme", "globex", "acme")]
    await world.settle_reply(*(world.verdict(claim, ruined()) for claim in await world.claim(3)))
    told = await world.appended("events")
    assert {(one.tenant, one.count) for one in told} == {("acme", 2), ("globex", 1)}
    dead = [await world.get(job.id) for job in jobs]
    assert sorted(told, key=str) == sorted(deaths(dead), key=str)
    assert await world.appended("events", Scope("globex")) == list(deaths(dead[1:2]))


async def test_a_leader_that_saw_an_older_journal_numbers_nothing(world: World) -> None:
    """S76: what it would number has its number already, and what came since keeps waiting."""
    await world.die()
    seen = await world.pending("events")
    numbered = await world.number("events")
    after = await world.die()
    late = NumberRequest(
        scope=ALL,
        journal="events",
        revision=seen.end.revision,
        taken=(),
        entries=tuple(msgspec.structs.replace(one, number=2) for one in numbered),
        memory=b"late",
    )
    assert not await world.store.journal.number(late)
    assert await world.numbered("events") == list(numbered)
    assert await world.appended("events") == list(deaths([after]))


async def test_a_death_and_its_event_outlive_the_server_together(world: World, server: ValkeyServer) -> None:
    """S63: one script wrote both; what comes after the restart has a later place."""
    first = await world.die()
    server.kill()
    server.start()
    with suppress(StoreUnavailable):  # by the connection that was cut
        await world.find_all()
    second = await world.die()
    assert [letter.job for letter in await world.letters()] == [second, first]
    waiting = (await world.pending("events")).entries
    assert [one.entry for one in waiting] == [*deaths([first]), *deaths([second])]
    assert waiting[0].place < waiting[1].place
    assert [entry.number for entry in await world.number("events")] == [1, 2]
