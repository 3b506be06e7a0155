"""A real server that goes away under `fairlane top`, and comes back."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple

import pytest

from fairlane import Fairlane
from tests.cli.top.watcher import OFTEN, watching
from tests.servers.postgres import MEMORY, PostgresServer
from tests.servers.proxy import Proxy, proxied
from tests.servers.valkey import HASTY, ValkeyServer, free_port


class Distant(NamedTuple):
    """An application whose store is behind a network that can be broken."""

    app: Fairlane
    network: Proxy


@pytest.fixture(params=["postgres", "redis"])
async def distant(request: pytest.FixtureRequest) -> AsyncGenerator[Distant]:
    """A server of its own, with one job."""
    server: PostgresServer | ValkeyServer
    if request.param == "postgres":
        server, end = (made := PostgresServer(folder=MEMORY)), made.close
    else:
        server, end = (other := ValkeyServer(*HASTY, folder=MEMORY, port=free_port())), other.remove
    server.start()
    try:
        async with proxied(server.port) as network:
            url = (
                f"postgresql://fairlane@127.0.0.1:{network.port}/postgres?pool=2"
                if request.param == "postgres"
                else f"redis://127.0.0.1:{network.port}"
            )
            app = Fairlane(url)
            async with app:
                await app.client.store.upkeep.migrate()
                app.task(name="mail.send")(lambda: None)
                await app.aenqueue_by_name("mail.send", {}, tenant="acme")
                yield Distant(app, network)
    finally:
        end()


async def test_while_the_store_is_away_it_says_so_with_the_age_of_what_it_shows(distant: Distant) -> None:
    """The rows stay, and their age grows; another view is empty; all is well when the store is back."""
    async with watching(distant.app, "queues", every=OFTEN) as user:
        before = user.rows
        assert before
        distant.network.is_refusing = True
        distant.network.cut()
        await user.until(lambda: user.about.startswith("STORE AWAY, shown is what was "))
        assert user.rows == before
        first = user.about.partition(" ago:")[0]
        await user.until(lambda: user.about.partition(" ago:")[0] != first)
        await user.pilot.press("2")
        await user.until(lambda: user.about.startswith("STORE AWAY, nothing to show yet"))
        assert user.rows == []
        distant.network.is_refusing = False
        await user.until(lambda: user.about.startswith("live, every "))
        assert user.column("TENANT") == ["acme"]
