"""Several tenants in one queue, on any store, and a worker that only claims: who holds slots, who waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from fairlane import Fairlane, Queue
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.claims import ClaimRequest, QueueRequest
from fairlane.store.opening import register_scheme
from tests.app.world import note
from tests.oracle.clock import DrivenClock
from tests.stores import STORES
from tests.web.pages.scene import Lent


class Shop:
    """An application on a store, and a worker that only claims."""

    def __init__(self, app: Fairlane, store: Store, clock: DrivenClock) -> None:
        """Declare a task."""
        self.app = app
        self.store = store
        self.clock = clock
        self.task = app.task(name="note", queue="bulk")(note)

    async def enqueue(self, tenant: str, number: int = 1, **options: Any) -> list[str]:
        """Enqueue some jobs of a tenant."""
        return [str((await self.task.using(tenant=tenant, **options).aenqueue()).id) for _ in range(number)]

    async def claim(self, number: int, queue: str = "bulk") -> None:
        """Let so many more run."""
        request = ClaimRequest(
            scope=Scope.all(),
            worker="w1",
            lease=600 * SECOND,
            queue_requests=(QueueRequest(queue, number),),
            total=number,
        )
        assert len((await self.store.claims.claim(request)).claims) == number

    async def crowd(self) -> None:
        """Let globex hold all four slots before acme and initech come."""
        await self.enqueue("globex", 9)
        await self.claim(4)
        self.clock.advance(60)
        await self.enqueue("acme", 2)
        self.clock.advance(30)
        await self.enqueue("initech")


@asynccontextmanager
async def opened_shop(store_name: str = "sqlite") -> AsyncIterator[Shop]:
    """Open an empty store."""
    clock = DrivenClock()
    async with STORES[store_name](clock) as store:
        register_scheme("shop", lambda *_: cast("Store", Lent(store)))
        app = Fairlane("shop://here", queues=[Queue(name) for name in ("bulk", "own", "other", "elsewhere")])
        try:
            yield Shop(app, store, clock)
        finally:
            await app.aclose()
