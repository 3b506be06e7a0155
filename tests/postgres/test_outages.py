"""A server that is away, a way that is cut: one clear error, soon, and no help needed to go on (S66)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from fairlane.model.errors import StoreBusy, StoreError, StoreUnavailable
from fairlane.model.instants import SECOND
from fairlane.model.lifecycle.states import State
from fairlane.store.contract.claims import ClaimReply
from fairlane.store.contract.registry import WaitRequest, WorkersRequest
from fairlane.store.contract.request import Request
from fairlane.store.postgres import connection as connect
from fairlane.store.postgres import wake
from fairlane.store.postgres.errors import CommitUnknown
from fairlane.store.postgres.store import PostgresStore
from tests.contract.world import ALL, World
from tests.oracle.clock import DrivenClock
from tests.seconds import counted
from tests.servers.postgres import FAST, IMMEDIATE, PostgresServer, free_port
from tests.servers.proxy import Proxy, proxied
from tests.servers.schemas import url_of

SOON = 4.0
"""Seconds within which a verb must report that the store is away: less than it waits for a connection."""


@pytest.fixture
async def proxy(breakable: PostgresServer) -> AsyncIterator[Proxy]:
    """A way to the module's server that can be broken."""
    async with proxied(breakable.port) as proxy:
        yield proxy


@pytest.fixture
async def distant(fragile: PostgresStore, proxy: Proxy) -> AsyncIterator[PostgresStore]:
    """The module's store by that way."""
    assert await answers(fragile)
    store = PostgresStore(f"postgresql://fairlane@127.0.0.1:{proxy.port}/postgres?pool=2")
    yield store
    await store.upkeep.aclose()


async def answers(store: PostgresStore) -> bool:
    """Ask the store for something; True, or an error."""
    return (await store.registry.status(Request(scope=ALL))).now > 0


async def comes_back(store: PostgresStore) -> bool:
    """Ask until the store answers: a connection may be lost that nobody has used since it was cut."""
    while True:
        try:
            return await answers(store)
        except StoreUnavailable:
            await asyncio.sleep(0.01)


async def refusal(store: PostgresStore) -> StoreError:
    """Return the error of a verb, which must come soon."""
    async with counted() as seconds:
        with pytest.raises(StoreError) as caught:
            await answers(store)
    assert seconds() < SOON
    return caught.value


@pytest.mark.parametrize("how", ["fast", "immediate", "killed"])
async def test_a_store_whose_server_was_restarted_goes_on(
    breakable: PostgresServer, fragile: PostgresStore, how: str
) -> None:
    """S66: verbs fail soon while it is away, safe to repeat, and succeed when it is back."""
    assert await answers(fragile)
    if how == "killed":
        breakable.kill()
    else:
        breakable.stop(FAST if how == "fast" else IMMEDIATE)
    for _ in range(3):
        error = await refusal(fragile)
        assert isinstance(error, StoreUnavailable)
        assert error.retry_safe
    breakable.start()
    assert await comes_back(fragile)


async def test_a_server_that_was_never_there_is_said_to_be_away() -> None:
    """S66: by where it should be, without the password."""
    store = PostgresStore(f"postgresql://me:secret@127.0.0.1:{free_port()}/postgres")
    error = await refusal(store)
    assert isinstance(error, StoreUnavailable)
    assert "PostgreSQL at 127.0.0.1:" in str(error)
    assert "secret" not in str(error)
    await store.upkeep.aclose()


async def test_a_terminated_backend_costs_at_most_the_statement_it_ran(
    fragile: PostgresStore, breakable: PostgresServer
) -> None:
    """S66: what comes after it gets a new connection."""
    assert await answers(fragile)
    with psycopg.connect(breakable.url, autocommit=True) as admin:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fairlane'"
        assert admin.execute(ended).fetchall() == [(True,)]
    assert await comes_back(fragile)


async def test_a_connection_lost_in_a_transaction_has_committed_nothing(
    distant: PostgresStore, proxy: Proxy
) -> None:
    """S66: the error says that a repeat is safe; it is not the one that says that nobody knows."""
    with pytest.raises(StoreUnavailable) as caught:  # noqa: PT012 (the cut comes between two statements)
        async with distant._server.transaction() as connection:
            await connection.execute("CREATE TEMP TABLE t ()")
            proxy.cut()
            await connection.execute("SELECT 1")
    assert type(caught.value) is StoreUnavailable
    assert await comes_back(distant)


@pytest.mark.parametrize("is_delivered", [True, False])
async def test_a_connection_lost_in_the_commit_may_have_committed(
    distant: PostgresStore, fragile: PostgresStore, proxy: Proxy, *, is_delivered: bool
) -> None:
    """S66: whether the server had it or not, the error says that nobody knows."""
    assert await answers(distant)
    (proxy.cut_after if is_delivered else proxy.cut_before)(b"COMMIT\0")
    note = f"note {is_delivered}"
    with pytest.raises(CommitUnknown) as caught:
        async with distant._server.transaction() as connection:
            await connection.execute("INSERT INTO fairlane.meta VALUES ($1, '')", note)
    assert caught.value.retry_safe
    found = await fragile._server.fetch("SELECT 1 FROM fairlane.meta WHERE name = $1", note)
    assert len(found) == int(is_delivered)


async def test_a_statement_of_its_own_that_is_cut_may_have_committed(
    distant: PostgresStore, fragile: PostgresStore, proxy: Proxy
) -> None:
    """S66: it commits by itself, so its fate is as unknown as that of a commit."""
    assert await answers(distant)
    proxy.cut_after(b"a word to be cut after")
    with pytest.raises(CommitUnknown):
        await distant._server.fetch("INSERT INTO fairlane.meta VALUES ($1, '')", "a word to be cut after")
    assert await fragile._server.value("SELECT 1 FROM fairlane.meta WHERE name = 'a word to be cut after'")


async def test_what_was_settled_before_the_way_was_cut_is_said(distant: PostgresStore, proxy: Proxy) -> None:
    """S35: the claim behind it is lost; a worker that is told so does not take its jobs for stale."""
    world = World(distant, DrivenClock())
    await world.enqueue()
    claim = await world.claim_one()
    proxy.cut_before(b"queue-to-be-cut")
    queue_request = world.claim_request(queue="queue-to-be-cut")
    reply = await world.settle_reply(world.verdict(claim), claim=queue_request)
    assert proxy.cuts_made == 1
    assert [one.id for one in reply.settled] == [claim.job.id]
    assert reply.claimed == ClaimReply(is_partial=True)
    assert await comes_back(distant)
    assert (await world.get(claim.job.id)).state is State.SUCCEEDED


async def test_a_network_that_swallows_everything_is_noticed(
    distant: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S66: a statement without an answer ends after its time, with the error that nobody knows its fate."""
    monkeypatch.setattr(connect, "STATEMENT_SECONDS", 1)  # and a second more for the way
    monkeypatch.setattr(connect, "LOCK_SECONDS", 2)
    assert await answers(distant)
    proxy.freeze()
    error = await refusal(distant)
    assert isinstance(error, CommitUnknown)
    proxy.thaw()
    assert await comes_back(distant)


async def test_a_pool_that_is_used_up_is_said_to_be(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S66: the error names the number, so that it can be raised in the URL."""
    store = PostgresStore(url_of(schema) + "&pool=1")
    async with store._server.transaction():
        with monkeypatch.context() as patch:  # to connect may take longer
            patch.setattr(connect, "LOCK_SECONDS", 0.1)
            with pytest.raises(StoreBusy, match="all 1 connections of the pool are in use") as caught:
                await answers(store)
    assert caught.value.retry_safe
    assert await answers(store)
    await store.upkeep.aclose()


async def test_a_lock_that_others_hold_is_waited_for_a_while(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S13: then the store is busy, which is safe to repeat."""
    monkeypatch.setitem(connect._IN_SESSION, "lock_timeout", "50ms")
    first, second = PostgresStore(url_of(schema)), PostgresStore(url_of(schema))
    async with first._server.transaction() as connection:
        await connection.execute(f"LOCK TABLE {schema}.worker")
        with pytest.raises(StoreBusy) as caught:
            await second.registry.workers(WorkersRequest(scope=ALL))
    assert caught.value.retry_safe
    assert await second.registry.workers(WorkersRequest(scope=ALL)) == ()
    await first.upkeep.aclose()
    await second.upkeep.aclose()


async def test_what_was_settled_is_said_though_the_claim_behind_it_waits_in_vain(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S35: somebody holds the queue that is asked for; a claim alone tells of it."""
    monkeypatch.setitem(connect._IN_SESSION, "lock_timeout", "50ms")
    clock = DrivenClock()
    first, second = PostgresStore(url_of(schema), clock.now), PostgresStore(url_of(schema), clock.now)
    world = World(second, clock)
    await world.enqueue()
    claim = await world.claim_one()
    queue_request = world.claim_request(queue="held")
    async with first._server.transaction() as connection:
        await connection.execute(f"SELECT {schema}.lock_queue('held')")
        reply = await world.settle_reply(world.verdict(claim), claim=queue_request)
        with pytest.raises(StoreBusy):
            await second.claims.claim(queue_request)
    assert [one.id for one in reply.settled] == [claim.job.id]
    assert reply.claimed == ClaimReply(is_partial=True)
    await first.upkeep.aclose()
    await second.upkeep.aclose()


async def test_a_full_server_is_said_to_be(breakable: PostgresServer, fragile: PostgresStore) -> None:
    """S66: too many connections are an outage that ends by itself."""
    with psycopg.connect(breakable.url, autocommit=True) as admin:
        admin.execute("ALTER DATABASE postgres CONNECTION LIMIT 0")
        admin.execute("CREATE ROLE poor LOGIN")
        admin.execute("GRANT USAGE ON SCHEMA fairlane TO poor")
        store = PostgresStore(breakable.tcp_url.replace("fairlane@", "poor@"))
        error = await refusal(store)
        admin.execute("ALTER DATABASE postgres CONNECTION LIMIT -1")
    assert isinstance(error, StoreUnavailable)
    assert error.retry_safe
    await store.upkeep.aclose()


async def test_a_listener_on_a_dead_network_is_noticed(
    distant: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S56: nobody resets its connection, so it is asked now and then; once that fails, it listens anew."""
    monkeypatch.setattr(wake, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(wake, "PROBE_SECONDS", 0.0)
    request = WaitRequest(scope=ALL, worker="w1", queues=(), at_most=SECOND)
    hearing = distant._server.wake
    assert await distant.registry.wait(request)
    listener = hearing._listener
    assert listener is not None
    proxy.freeze()
    while hearing._listener is listener:
        await distant.registry.wait(request)
    proxy.thaw()
    assert await distant.registry.wait(request)
    assert hearing._listener not in {None, listener}


async def test_a_line_that_is_cut_as_it_begins_to_listen_is_no_error(
    distant: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S56, S66: the poll suffices until it listens anew; an error of the driver would end a worker."""
    monkeypatch.setattr(wake, "POLL_SECONDS", 0.1)
    request = WaitRequest(scope=ALL, worker="w1", queues=(), at_most=SECOND)
    proxy.cut_after(b"LISTEN")
    assert await distant.registry.wait(request)
    assert proxy.cuts_made == 1
    assert await distant.registry.wait(request)
    assert distant._server.wake._listener is not None


async def test_a_worker_listens_and_works_by_two_connections(
    distant: PostgresStore, breakable: PostgresServer
) -> None:
    """The pool is the bound for everything that one event loop does, listening included."""
    request = WaitRequest(scope=ALL, worker="w1", queues=(), at_most=0)
    await asyncio.gather(distant.registry.wait(request), *(answers(distant) for _ in range(20)))
    with psycopg.connect(breakable.url) as admin:
        used = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlane'"
        assert admin.execute(used).fetchone() == (2 + 1,)  # the store that migrated has one
