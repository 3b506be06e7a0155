"""A connection that ends in the middle of a call of several scripts: what came before is given (S66)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from redis import Redis

from fairlane.model.errors import StoreUnavailable
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.claims import SettleRequest
from fairlane.store.opening import open_store
from fairlane.store.redis.script_loader import MAX_JOBS_PER_SCRIPT, load
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.redis.test_pages import claim_of, fill
from tests.servers.proxy import Proxy, proxied
from tests.servers.valkey import HASTY, MEMORY, ValkeyServer, free_port

PAGES = 8
"""More than are on their way at a time."""

MANY = PAGES * MAX_JOBS_PER_SCRIPT - 10
REQUEST = claim_of(("default", MANY))


def page(number: int) -> bytes:
    """Return what only the message of one page contains."""
    return b"$1\r\n%d\r\n$1\r\n%d\r\n" % (number, PAGES)


class Place(NamedTuple):
    """A store behind a network that can be cut."""

    world: World
    network: Proxy


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """Enqueue jobs for two claims and load the scripts; the invariants must hold at the end."""
    server = ValkeyServer(*HASTY, folder=MEMORY, port=free_port())
    server.start()
    with Redis.from_url(server.url) as client:
        for verb in ("claims/claim", "claims/settle"):
            client.script_load(load(verb).text)
    try:
        async with proxied(server.port) as network:
            clock = DrivenClock()
            world = World(open_store(f"redis://127.0.0.1:{network.port}", clock=clock), clock)
            await fill(world, 2 * MANY)
            yield Place(world, network)
            await world.check_invariants()
            await world.store.upkeep.aclose()
    finally:
        server.remove()


async def test_what_the_answered_pages_settled_and_claimed_is_said(place: Place) -> None:
    """S35: their jobs would wait for their leases. What is not named is sent again, and nothing is torn."""
    claims = (await place.world.store.claims.claim(REQUEST)).claims
    settlements = tuple(map(place.world.verdict, claims))
    request = SettleRequest(scope=ALL, worker="w1", settlements=settlements, claim=REQUEST)
    place.network.cut_before(page(PAGES))
    reply = await place.world.store.claims.settle(request)
    assert place.network.cuts_made == 1
    assert reply.claimed is not None
    assert reply.claimed.is_partial
    named = {one.id for one in reply.settled}
    answered = [{one.id for one in settlements[: pages * MAX_JOBS_PER_SCRIPT]} for pages in range(1, PAGES)]
    assert named in answered
    assert (len(reply.claimed.claims), reply.stale) == (len(named), ())
    for claim in reply.claimed.claims:
        assert await place.world.settle(claim) is State.SUCCEEDED
    rest = tuple(one for one in settlements if one.id not in named)
    again = await place.world.store.claims.settle(SettleRequest(scope=ALL, worker="w1", settlements=rest))
    assert len(again.settled) + len(again.stale) == len(rest)
    states = {(await place.world.get(one.id)).state for one in settlements}
    assert states == {State.SUCCEEDED}


async def test_a_turn_of_which_nothing_was_answered_is_an_error(place: Place) -> None:
    """S66: there is nothing to give; the caller sends it again when the server is back."""
    claims = (await place.world.store.claims.claim(REQUEST)).claims
    settlements = tuple(map(place.world.verdict, claims))
    request = SettleRequest(scope=ALL, worker="w1", settlements=settlements, claim=REQUEST)
    place.network.cut_before(page(1))
    with pytest.raises(StoreUnavailable):
        await place.world.store.claims.settle(request)
    reply = await place.world.store.claims.settle(request)
    assert (len(reply.settled), reply.claimed and len(reply.claimed.claims)) == (MANY, MANY)


async def test_what_the_first_scripts_of_a_claim_brought_is_given(place: Place) -> None:
    """The next one never came there; the claim says that there may be more."""
    place.network.cut_before(b"is_bound_met")  # a part of what a claim carries from script to script
    reply = await place.world.store.claims.claim(REQUEST)
    assert (len(reply.claims), reply.is_partial) == (MAX_JOBS_PER_SCRIPT, True)
    assert len((await place.world.store.claims.claim(REQUEST)).claims) == MANY
