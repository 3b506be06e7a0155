"""The simulated application: its queues, its tasks, and handlers that do as their arguments say.

A handler's first and last acts are lines in the outside ledger. Which run it belongs to it finds by the loop
that it runs in.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from fairlane import Context, Fairlane, Gate, Queue
from fairlane.app.config.configuration import LoadedConfig
from fairlane.app.task.declaration import Declaration
from fairlane.lab import ledger
from fairlane.model.policy.limits import Limits, Rate
from fairlane.model.retry.backoff import Backoff
from fairlane.model.retry.outcome import Cancel, Fail, Retry, Snooze
from tests.simulation.provider import Guards

if TYPE_CHECKING:
    from tests.simulation.process import ProcessLoop

Plan = list[list[Any]]
"""What each attempt of a job does, the last one repeating: a word and a number of milliseconds."""

TENANTS: Final = ("acme", "globex", "initech", "hooli")
WEIGHTS: Final = {"acme": 4.0, "globex": 1.0, "initech": 1.0, "hooli": 0.25}
QUEUES: Final = ("mail", "bulk", "fair")
SPENDING: Final = ("buy", "order")
GUARDED: Final = ("call", "text", *SPENDING)
"""Tasks that only runs with guards have."""

_CENT: Final = 10_000
GATE: Final = Gate("screens", limit=2)
BACKOFF: Final = Backoff.exponential(0.3, cap=2, jitter=0.3)


def _started(ctx: Context, home: ProcessLoop) -> None:
    process = home.process
    process.started.add((ctx.job.id, ctx.fence))
    process.ledger.append(
        ledger.Started(
            job=str(ctx.job.id),
            attempt=ctx.attempt,
            fence=ctx.fence,
            worker=process.name,
            pid=process.number,
            at=process.elapsed(),
            tenant=ctx.tenant,
        )
    )


def _ended(ctx: Context, home: ProcessLoop, *, is_raised: bool) -> None:
    process = home.process
    if not process.is_over:
        process.ledger.append(
            ledger.Ended(
                job=str(ctx.job.id),
                attempt=ctx.attempt,
                fence=ctx.fence,
                outcome="raised" if is_raised else "returned",
                at=process.elapsed(),
            )
        )


def _step(ctx: Context, plan: Plan) -> tuple[str, float]:
    word, millis = plan[min(ctx.attempt, len(plan)) - 1]
    return word, millis / 1_000


def _finish(word: str) -> Any:
    """Return or raise what a plan says."""
    match word:
        case "fail":
            raise RuntimeError("as planned")
        case "retry":
            raise Retry("as planned", after=0.5)
        case "snooze":
            raise Snooze(1)
        case "fatal":
            return Fail("as planned")
        case "give up":
            return Cancel("as planned")
        case "exit":
            raise SystemExit(3)
    return {"done": word}


async def _act(ctx: Context, home: ProcessLoop, n: int, word: str, seconds: float) -> Any:
    ctx.progress(0.1, word)
    if word == "stubborn":
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            await asyncio.sleep(seconds)  # it takes its time to stop
            raise
    else:
        await asyncio.sleep(60 if word == "hang" else seconds)
    if word == "chain":
        app = home.process.app
        declared = app.client.registry.find(ctx.job.task)
        assert declared is not None
        await home.process.enqueue(ctx.job.task, ctx.tenant, n + 1_000, [["ok", 5]], {})
    return _finish(word)


def _spend(ctx: Context, home: ProcessLoop, total: int, more: int) -> int:
    """Spend so many cents more, and write the new sum down before."""
    if more:
        process = home.process
        line = ledger.Paid(
            job=str(ctx.job.id), fence=ctx.fence, total=(total + more) * _CENT, at=process.elapsed()
        )
        process.ledger.append(line)
        ctx.spend(Decimal(more) / 100)
    return total + more


async def _act_guarded(ctx: Context, home: ProcessLoop, n: int, word: str, seconds: float) -> Any:
    """Call what may be down, or spend something before and after the work."""
    provider, task = home.process.provider, ctx.job.task
    if task == "text":
        async with home.process.app.breaker("texts"):
            result = await _act(ctx, home, n, word, seconds)
            provider.call()
        return result
    total = _spend(ctx, home, 0, n % 3 * 10) if task in SPENDING else 0
    try:
        result = await _act(ctx, home, n, word, seconds)
    finally:
        if total:
            _spend(ctx, home, total, n % 4 * 15)
    if task == "call":
        provider.call()
    return result


async def handle(ctx: Context, n: int, plan: Plan) -> Any:
    """Do what the plan says of this attempt."""
    home = cast("ProcessLoop", asyncio.get_running_loop())
    _started(ctx, home)
    word, seconds = _step(ctx, plan)
    try:
        act = _act_guarded if ctx.job.task in GUARDED else _act
        result = await act(ctx, home, n, word, seconds)
    except BaseException:
        _ended(ctx, home, is_raised=True)
        raise
    _ended(ctx, home, is_raised=False)
    return result


def handle_plainly(ctx: Context, n: int, plan: Plan) -> Any:
    """Do the same in a thread, all at once."""
    home = cast("ProcessLoop", asyncio.get_running_loop())
    _started(ctx, home)
    word, _ = _step(ctx, plan)
    try:
        result = _finish(word)
    except BaseException:
        _ended(ctx, home, is_raised=True)
        raise
    _ended(ctx, home, is_raised=False)
    return result


def _declare() -> dict[str, Declaration]:
    """Declare all tasks once: their handlers are the same in every run."""
    app = Fairlane("sim://declarations", config={})
    usual: dict[str, Any] = {"retry": BACKOFF, "timeout": 4}
    table: dict[str, tuple[Any, dict[str, Any]]] = {
        "send": (handle, {"queue": "mail", "on_shutdown": "requeue"}),
        "sync": (handle_plainly, {"queue": "mail"}),
        "once": (handle, {"queue": "mail", "at_most_once": True}),
        "poll": (handle, {"queue": "mail", "dedup_until": "started"}),
        "shoot": (handle, {"queue": "bulk", "gate": GATE.name}),
        "crawl": (handle, {"queue": "bulk", "rate": Rate(4, "second", burst=2)}),
        "turn": (handle, {"queue": "fair"}),
        "novel": (handle, {"queue": "mail", "soft_timeout": 1}),
        "call": (handle, {"queue": "mail", "breaker": "calls"}),
        "text": (handle, {"queue": "bulk"}),
        "buy": (handle, {"queue": "bulk", "budget": "ai"}),
        "order": (handle, {"queue": "mail", "budget": "shop"}),
    }
    for name, (handler, said) in table.items():
        app.task(name=name, **{**usual, **said})(handler)
    return {said.name: said for said in app.client.registry}


TASKS: Final = _declare()
NOVEL: Final = "novel"
"""A task that only newer workers know (S33)."""


_READ: Final[dict[tuple[bool, Guards | None], LoadedConfig]] = {}
"""The configuration, which is the same in every process of a run and in every run of its kind, read once."""


def make_app(
    *, is_old: bool = False, is_counted_in_seconds: bool = False, guards: Guards | None = None
) -> Fairlane:
    """Make the application of one process, of a version that lacks the newest task or has it."""
    lacks = {*((NOVEL,) if is_old else ()), *(GUARDED if guards is None else ())}
    app = Fairlane(
        "sim://store",
        config={"tenants": {name: {"weight": weight} for name, weight in WEIGHTS.items()}},
        queues=[
            Queue("mail"),
            Queue("bulk", limits=Limits(running=3), cost="seconds" if is_counted_in_seconds else "jobs"),
            Queue("fair"),
        ],
        gates=[GATE],
        breakers=[] if guards is None else guards.breakers,
        budgets=[] if guards is None else guards.budgets,
    )
    kind = is_counted_in_seconds, guards
    if kind not in _READ:
        _READ[kind] = app.configuration.read
    app.configuration._read = _READ[kind]
    app.client.registry.add(*(said for name, said in TASKS.items() if name not in lacks))
    return app
