"""A process with an application in it, to be stopped, killed and paused.

``python -m tests.processes.program ROLE STORE LEDGER``. Roles: worker, burst, scheduler. The store is a file
of SQLite or the URL of a server. Settings come from the environment. It writes down, outside of the store,
what its handlers and its settlements saw.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any, Final, cast

from fairlane import Backoff, Context, Fairlane, Lane
from fairlane.duties.command import run_scheduler
from fairlane.lab import ledger
from fairlane.runtime.logs import JsonFormatter
from fairlane.store.contract import Store
from fairlane.store.contract.claims import (
    ReclaimReply,
    ReclaimRequest,
    RenewReply,
    RenewRequest,
    SettleReply,
    SettleRequest,
)
from fairlane.store.opening import StoreClock, open_store, register_scheme
from fairlane.worker import execute
from fairlane.worker.command import run_worker
from tests.faults.campaign import Ledger, moment

_book: Ledger | None = None


def write(record: ledger.Record) -> None:
    """Append to this process's record, if it keeps one."""
    if _book is not None:
        _book.write(record)


def keep_book(path: Path, *, is_shared: bool = False) -> None:
    """Write down what is seen from now on, in a file of this process's own or of its whole command."""
    global _book  # noqa: PLW0603 (there is one process)
    _book = Ledger(path, is_shared=is_shared)


class RecordedClaims:
    """The claims facet, with what it answers written down."""

    def __init__(self, real: Any) -> None:
        """Stand before the real one."""
        self._real = real

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._real, verb)

    async def settle(self, request: SettleRequest) -> SettleReply:
        """Write down what was accepted, and what was stale."""
        asked = {one.id: one for one in request.settlements}
        at = moment()
        reply: SettleReply = await self._real.settle(request)
        for done in reply.settled:
            settlement = asked[done.id]
            write(
                ledger.Settled(
                    job=str(done.id),
                    attempt=attempts[str(done.id), settlement.fence],
                    fence=settlement.fence,
                    event=settlement.event,
                    state=done.state,
                    at=at,
                    unstarted=settlement.is_unstarted,
                )
            )
        for id in reply.stale:
            write(ledger.Stale(job=str(id), fence=asked[id].fence, at=moment()))
        if reply.claimed is not None:
            _remember(reply.claimed.claims)
        return reply

    async def claim(self, request: Any) -> Any:
        """Remember the numbers of attempts; if asked to, let the answer arrive when the loop is blocked."""
        reply = await self._real.claim(request)
        _remember(reply.claims)
        if reply.claims and flight.is_wanted:
            flight.has_come = True
            while not flight.is_loop_blocked:  # noqa: ASYNC110 (it is another loop that is blocked)
                await asyncio.sleep(0.001)
        return reply

    async def renew(self, request: RenewRequest) -> RenewReply:
        """Write down what was stale."""
        fences = {one.id: one.fence for one in request.renewals}
        reply: RenewReply = await self._real.renew(request)
        for id in reply.stale:
            write(ledger.Stale(job=str(id), fence=fences[id], at=moment()))
        return reply

    async def reclaim(self, request: ReclaimRequest) -> ReclaimReply:
        """Write down what was taken back."""
        at = moment()
        reply: ReclaimReply = await self._real.reclaim(request)
        for lost in reply.lost:
            write(ledger.Reclaimed(job=str(lost.id), fence=lost.fence, state=lost.state, at=at))
        return reply


attempts: dict[tuple[str, int], int] = {}
"""Of the claims that were handed out last: a process that runs a million jobs must not grow by them."""
_KEPT: Final = 2_000


class Flight:
    """An answer that is on its way while a handler blocks the worker's loop."""

    is_wanted = False
    has_come = False
    is_loop_blocked = False


flight = Flight()


def _remember(claims: Any) -> None:
    for claim in claims:
        attempts[str(claim.job.id), claim.fence] = claim.job.attempt
    while len(attempts) > _KEPT:
        del attempts[next(iter(attempts))]


class RecordedStore:
    """A store whose claims are recorded."""

    def __init__(self, real: Store) -> None:
        """Stand before the real one."""
        self._real = real
        self.claims = RecordedClaims(real.claims)

    def __getattr__(self, facet: str) -> Any:
        return getattr(self._real, facet)


def _open(url: str, clock: StoreClock | None) -> Store:
    return cast("Store", RecordedStore(open_store(url.removeprefix("recorded+"), clock=clock)))


def make_app(place: Path | str, clock: StoreClock | None = None) -> Fairlane:  # noqa: C901, PLR0915 (a list of handlers)
    """Make the application that all processes of a test share, on a file or on a server."""
    url = place if isinstance(place, str) and "://" in place else f"sqlite:///{place}"
    register_scheme(f"recorded+{url.partition(':')[0]}", lambda url, given: _open(url, clock or given))
    settings = json.loads(os.environ.get("PROGRAM_SETTINGS", "{}"))
    slots = settings.pop("slots", 4)
    config = {"worker": settings}
    app = Fairlane(f"recorded+{url}", config=config, lanes=[Lane("main", slots, ["default"])])

    def begin(ctx: Context) -> None:
        write(
            ledger.Started(
                job=str(ctx.job.id),
                attempt=ctx.attempt,
                fence=ctx.fence,
                worker=str(os.getpid()),
                pid=os.getpid(),
                at=moment(),
                tenant=ctx.tenant,
            )
        )

    def end(ctx: Context, outcome: str) -> None:
        result = cast("Any", outcome)
        write(
            ledger.Ended(
                job=str(ctx.job.id), attempt=ctx.attempt, fence=ctx.fence, outcome=result, at=moment()
            )
        )

    @app.task(name="short", retry=Backoff.delays(0.01), max_attempts=100)
    async def short(ctx: Context, seconds: float) -> None:
        begin(ctx)
        await asyncio.sleep(seconds)
        end(ctx, "returned")

    @app.task(name="plain", retry=Backoff.delays(0.01), max_attempts=100)
    def plain(ctx: Context, seconds: float) -> None:
        begin(ctx)
        time.sleep(seconds)
        end(ctx, "returned")

    @app.task(name="endless", on_shutdown="requeue")
    async def endless(ctx: Context) -> None:
        begin(ctx)
        await asyncio.Event().wait()

    @app.task(name="once", max_attempts=1)
    async def once(ctx: Context) -> None:
        begin(ctx)
        end(ctx, "returned")

    async def block(seconds: float) -> None:
        """Block the loop while a claim that will bring a job is on its way."""
        flight.is_wanted = True
        await once.using(tags=["in flight"]).aenqueue()
        while not flight.has_come:  # noqa: ASYNC110 (an event would belong to one of two loops)
            await asyncio.sleep(0)
        flight.is_loop_blocked = True
        time.sleep(seconds)  # noqa: ASYNC251 (the point of it)

    @app.task(name="stalling", max_attempts=1)
    async def stalling(ctx: Context, seconds: float) -> None:
        begin(ctx)
        await block(seconds)
        end(ctx, "returned")

    @app.task(name="blocking", timeout=1)
    async def blocking(ctx: Context) -> None:
        begin(ctx)
        await block(60)

    @app.task(name="forever", timeout=None)
    async def forever(ctx: Context) -> None:
        begin(ctx)
        time.sleep(600)  # noqa: ASYNC251 (the point of it)

    @app.task(name="ignores", timeout=1, max_attempts=1)
    def ignores(ctx: Context) -> None:
        begin(ctx)
        time.sleep(600)

    @app.task(name="deaf", timeout=1, max_attempts=1)
    async def deaf(ctx: Context) -> None:
        begin(ctx)
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    @app.task(name="forks")
    def forks(ctx: Context) -> str:
        begin(ctx)
        child = os.fork()
        if not child:
            # A child of a worker holds no claim: whatever it does, its parent's job goes on.
            os._exit(7)
        _, status = os.waitpid(child, 0)
        short.using(tags=["after"]).enqueue(0)
        end(ctx, "returned")
        return f"child left with {os.waitstatus_to_exitcode(status)}"

    @app.task(name="comes_back")
    def comes_back(ctx: Context) -> str:
        return fork(ctx)

    @app.task(name="comes_back_async")
    async def comes_back_async(ctx: Context) -> str:
        return fork(ctx)

    @app.task(name="sinks", max_attempts=1)
    def sinks(ctx: Context) -> None:
        sink(ctx)

    @app.task(name="sinks_async", max_attempts=1)
    async def sinks_async(ctx: Context) -> None:
        sink(ctx)

    def sink(ctx: Context) -> None:
        """Recurse without end, through more frames than Python would ever allow by itself."""
        begin(ctx)
        sys.setrecursionlimit(300_000)

        def deeper() -> None:
            deeper()

        deeper()

    @app.task(name="breaks")
    async def breaks(ctx: Context) -> None:
        """Break the worker's own code, so that no attempt can be settled any more."""
        begin(ctx)

        def broken(*_: object, **__: object) -> None:
            message = "the worker is broken"
            raise LookupError(message)

        vars(execute)["settlement_of"] = broken

    def fork(ctx: Context) -> str:
        begin(ctx)
        child = os.fork()
        if not child:
            return "I am the child"
        _, status = os.waitpid(child, 0)
        end(ctx, "returned")
        return f"child left with {os.waitstatus_to_exitcode(status)}"

    return app


def main(role: str, place: str, record: str) -> int:
    """Play one role to its end."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    if record != "-":
        keep_book(Path(record))
    app = make_app(place)
    if role == "scheduler":
        return run_scheduler(app)
    return run_worker(app, burst=role == "burst", duties=role != "idler")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
