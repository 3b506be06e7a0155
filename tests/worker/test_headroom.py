"""Long jobs of one tenant leave room for everybody else's, without any setting (S48); on each store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from fairlane import Context, Fairlane, Lane, Queue, State
from fairlane.worker.worker import WorkerRuntime
from tests.acceptance.conftest import PLACES
from tests.stores import MEMORY
from tests.worker.world import QUICK, until

CHUNKS = 40
MAILS = 20


class Office:
    """An application whose imports hold their slots until they are released, and whose mails are short."""

    def __init__(self, url: str) -> None:
        """Begin with nobody at work."""
        self.url = url
        self.let_go = asyncio.Event()
        self.importing: Counter[str] = Counter()
        self.mailed: list[str] = []
        self.app = Fairlane(url, config={})
        self.import_chunk, self.send_mail = self.tasks("default")

    def tasks(self, mail_queue: str) -> tuple[Callable[..., Awaitable[Any]], Callable[..., Awaitable[Any]]]:
        """Declare both tasks; return what enqueues one of each for a tenant."""

        @self.app.task(name="import_chunk")
        async def import_chunk(ctx: Context) -> None:
            self.importing[ctx.tenant] += 1
            await self.let_go.wait()

        @self.app.task(name="send_mail", queue=mail_queue)
        async def send_mail(ctx: Context) -> None:
            self.mailed.append(ctx.tenant)

        def chunks(tenant: str, number: int) -> Awaitable[Any]:
            return self.app.aenqueue_many(import_chunk.using(tenant=tenant).bind() for _ in range(number))

        def mail(tenant: str) -> Awaitable[Any]:
            return send_mail.using(tenant=tenant).aenqueue()

        return chunks, mail

    def declare(self, mail_queue: str = "default", **settings: Any) -> None:
        """Make the application anew, with settings."""
        self.app = Fairlane(self.url, config={}, **settings)
        self.import_chunk, self.send_mail = self.tasks(mail_queue)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[WorkerRuntime]:
        """Run a worker meanwhile; release all imports at the end."""
        worker = WorkerRuntime(self.app, settings=QUICK)
        running = asyncio.ensure_future(worker.run())
        try:
            await until(lambda: worker.is_ready or running.done())
            yield worker
        finally:
            self.let_go.set()
            worker.stop()
            await running


def has_settled_down(worker: WorkerRuntime) -> bool:
    """Whether the lane holds something, and has no room for more or found nothing to fill it with."""
    assert worker._parts is not None
    (lane, *_) = worker._parts.lanes
    free = lane.slots.free
    return not free or (free < lane.policy.slots and not lane.may_have_work and not lane.calls_in_flight)


@pytest.fixture(params=sorted(PLACES))
async def office(request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    """An empty store of each kind."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        async with PLACES[request.param](Path(folder)) as place:
            made = Office(place)
            try:
                yield made
            finally:
                await made.app.aclose()


@pytest.mark.parametrize("mail_queue", ["default", "mail"])
async def test_every_mail_runs_while_the_chunks_of_one_import_still_hold_their_slots(
    office: Office, mail_queue: str
) -> None:
    """With the settings as they come: in the queue of the import, and in another of the same lane."""
    office.declare(mail_queue)
    async with office.working() as worker:
        await office.import_chunk("globex", CHUNKS)
        await until(lambda: has_settled_down(worker) and office.importing.total() == worker.running)
        assert office.importing["globex"] == 14
        for number in range(MAILS):
            await office.send_mail(f"tenant-{number}")
        await until(lambda: len(office.mailed) == MAILS, "a mail waits for the import")
        assert Counter(office.mailed) == {f"tenant-{number}": 1 for number in range(MAILS)}
        counts = await office.app.jobs.acount(tenant="globex")
        assert (counts[State.RUNNING], counts[State.READY]) == (14, CHUNKS - 14)
        office.let_go.set()
        await until(lambda: worker.settled == CHUNKS + MAILS)


async def test_a_tenant_of_its_own_may_have_every_slot_where_the_lane_says_so(office: Office) -> None:
    """`headroom=0` is not the default: no slot is reserved, and the mail waits for a slot."""
    office.declare(lanes=[Lane("main", 16, ["default"], headroom=0)])
    async with office.working() as worker:
        await office.import_chunk("globex", CHUNKS)
        await until(lambda: office.importing["globex"] == 16)
        await office.send_mail("acme")
        counts = await office.app.jobs.acount()
        assert (counts[State.RUNNING], counts[State.READY]) == (16, CHUNKS - 16 + 1)
        office.let_go.set()
        await until(lambda: worker.settled == CHUNKS + 1)


async def test_long_jobs_of_as_many_tenants_as_slots_are_kept_can_still_fill_a_lane(office: Office) -> None:
    """The reserved slots are for whoever has nothing running, also with long jobs. A separate lane helps."""
    queues = [Queue("default"), Queue("mail")]
    lanes = [Lane("main", 16, ["default"]), Lane("quick", 2, ["mail"])]
    office.declare("mail", queues=queues, lanes=lanes)
    async with office.working():
        await office.import_chunk("globex", CHUNKS)
        await until(lambda: office.importing["globex"] == 14)
        for tenant in ("hooli", "initech", "umbrella"):
            await office.import_chunk(tenant, 3)
        await until(lambda: office.importing.total() == 16)
        assert office.importing == {"globex": 14, "hooli": 1, "initech": 1}
        await office.send_mail("umbrella")
        await until(lambda: office.mailed == ["umbrella"])
        assert office.importing.total() == 16
