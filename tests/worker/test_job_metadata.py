"""Handlers write their job's metadata: for later attempts, for those who look, at no cost else (S73)."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import apsw
import pytest

from fairlane import Backoff, Context, Fairlane, Job, State
from fairlane.model.instants import SECOND
from fairlane.model.scope import Scope
from fairlane.store.contract.claims import ReclaimRequest
from tests.worker.world import LONG, World, until, until_async


async def metadata_of(job: Job[Any]) -> dict[str, Any]:
    """Return a job's metadata as it is stored now."""
    return dict((await job.arefresh()).metadata)


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_attempt_goes_on_where_the_last_one_stopped(
    world: World, app: Fairlane, *, is_async: bool
) -> None:
    """What it wrote before it failed is kept over the retry, beside what was enqueued."""
    began: list[Any] = []

    def work(ctx: Context) -> str:
        page = ctx.metadata.get("page", 0)
        assert isinstance(page, int)
        began.append(page)
        ctx.metadata["page"] = page + 1
        if page < 2:
            message = f"page {page}"
            raise ValueError(message)
        return "read"

    async def awork(ctx: Context) -> str:
        return work(ctx)

    task = app.task(name="read", retry=Backoff.delays(0, 0))(awork if is_async else work)
    job = await task.using(tenant="acme", metadata={"plan": "pro"}).aenqueue()
    await world.burst(app)
    assert (began, await job.aresult()) == ([0, 1, 2], "read")
    assert await metadata_of(job) == {"plan": "pro", "page": 3}
    assert [one.id for one in await app.jobs.afind(metadata={"page": 3})] == [job.id]


async def test_only_attempts_that_wrote_send_metadata(world: World, app: Fairlane) -> None:
    """Reading costs nothing either, nor does writing what is there already."""

    @app.task(name="work")
    async def work(ctx: Context, what: str) -> None:
        if what == "read":
            assert ctx.metadata["plan"] == "pro"
        elif what == "same":
            ctx.metadata["plan"] = "pro"
        elif what == "write":
            ctx.metadata["plan"] = "free"

    jobs = {
        what: await work.using(tenant="acme", metadata={"plan": "pro"}).aenqueue(what)
        for what in ("nothing", "read", "same", "write")
    }
    await world.burst(app)
    sent = {one.id: one.metadata for request in world.requests("settle") for one in request.settlements}
    assert sent == {
        jobs["nothing"].id: None,
        jobs["read"].id: None,
        jobs["same"].id: None,
        jobs["write"].id: b'{"plan":"free"}',
    }


async def test_what_a_running_handler_writes_is_stored_with_the_next_renewal(
    world: World, app: Fairlane
) -> None:
    """It is seen, and found, while the handler runs; once stored it is not sent again."""
    release = asyncio.Event()

    @app.task(name="slow")
    async def slow(ctx: Context) -> None:
        ctx.metadata["step"] = 1
        ctx.metadata["step"] = 3
        await release.wait()

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app):
        await until_async(lambda: metadata_of(job), {"step": 3})
        assert [one.id for one in await app.jobs.afind(metadata={"step": 3}, state=State.RUNNING)] == [job.id]
        before = len(world.requests("renew"))
        await until(lambda: len(world.requests("renew")) > before + 1)
        sent = [one.metadata for request in world.requests("renew") for one in request.renewals]
        assert [one for one in sent if one is not None] == [b'{"step":3}']
        release.set()


async def test_metadata_that_could_not_be_told_goes_with_the_next_renewal(
    world: World, app: Fairlane
) -> None:
    """The store was away for a moment; nothing is lost."""
    began, release = asyncio.Event(), asyncio.Event()

    @app.task(name="slow")
    async def slow(ctx: Context) -> None:
        world.away = frozenset({"renew"})
        ctx.metadata["step"] = 3
        began.set()
        await release.wait()

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app, settings=LONG):
        await began.wait()
        await until(lambda: any(one.renewals[0].metadata for one in world.requests("renew")))
        world.away = frozenset()
        await until_async(lambda: metadata_of(job), {"step": 3})
        release.set()


async def test_a_lost_attempt_leaves_what_was_renewed_and_changes_nothing_after(
    world: World, app: Fairlane
) -> None:
    """S36: the next attempt has it; the old handler is fenced off."""
    began: list[dict[str, Any]] = []
    lost, left = asyncio.Event(), asyncio.Event()

    @app.task(name="slow")
    async def slow(ctx: Context) -> None:
        began.append(dict(ctx.metadata))
        if ctx.attempt > 1:
            return
        ctx.metadata["step"] = 1
        try:
            await lost.wait()
            ctx.metadata["step"] = 2
            await asyncio.Event().wait()
        finally:
            ctx.metadata["step"] = 3
            left.set()

    job = await slow.using(tenant="acme").aenqueue()
    async with world.working(app, duties=False, settings=LONG) as worker:
        await until_async(lambda: metadata_of(job), {"step": 1})
        world.ahead = 200_000 * SECOND
        assert (await app.client.store.claims.reclaim(ReclaimRequest(scope=Scope.all()))).lost
        lost.set()
        await left.wait()
        ended = await world.ended(job)
        await until(lambda: worker.running == 0)
    assert began == [{}, {"step": 1}]
    assert (ended.state, dict(ended.metadata)) == (State.SUCCEEDED, {"step": 1})


async def test_metadata_that_cannot_be_stored_fails_the_handler_where_it_writes(
    world: World, app: Fairlane
) -> None:
    """With the words of the assignment; what it wrote before is kept."""

    @app.task(name="odd", max_attempts=1)
    async def odd(ctx: Context) -> None:
        ctx.metadata["step"] = 1
        ctx.metadata["when"] = object()  # type: ignore[assignment]

    job = await odd.using(tenant="acme").aenqueue()
    await world.burst(app)
    ended = await job.arefresh()
    assert ended.state is State.DEAD
    assert "metadata.when: is of type object; use None, bool, int" in str(ended.attempts[0].message)
    assert dict(ended.metadata) == {"step": 1}


async def test_metadata_is_stored_with_a_success_in_the_handlers_transaction(
    world: World, app: Fairlane
) -> None:
    """S63: as it was then, and only if that transaction commits."""

    @app.task(name="pay", max_attempts=1)
    def pay(ctx: Context, *, commits: bool) -> None:
        ctx.metadata["paid"] = commits
        with closing(apsw.Connection(world.url.removeprefix("sqlite:///"))) as own:
            own.set_busy_timeout(10_000)
            own.execute("BEGIN IMMEDIATE")
            ctx.succeed_in(own)
            ctx.metadata["late"] = True
            if not commits:
                message = "after all, no"
                raise RuntimeError(message)
            own.execute("COMMIT")

    jobs = [await pay.using(tenant="acme").aenqueue(commits=commits) for commits in (True, False)]
    await world.burst(app)
    found = [await job.arefresh() for job in jobs]
    assert [(job.state, dict(job.metadata)) for job in found] == [
        (State.SUCCEEDED, {"paid": True}),
        (State.DEAD, {"paid": False, "late": True}),
    ]
