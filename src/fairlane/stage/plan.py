"""What the workers of a run must know, and the application that it makes. Opens no store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlane import Context, Fairlane, Gate, Lane, Queue, Share, Task
from fairlane.model.instants import Micros
from fairlane.model.ledger import Ended, Started
from fairlane.model.policy import DEFAULT_SLOTS, Cost
from fairlane.runtime.clock import MachineClock
from fairlane.stage.arrivals import WORK
from fairlane.stage.recorder import Recorder

VARIABLE: Final = "STAGE_PLAN"
"""The environment variable in which a worker process finds its plan."""

ASYNC: Final = "noop-async"
PLAIN: Final = "noop-plain"
GATED: Final = "gated"
PAUSED: Final = "paused"
BULK: Final = "bulk"
HELD: Final = frozenset({GATED, PAUSED})
"""Tasks whose jobs are not to run: one has a gate that lets nobody in, the other is paused by who uses it."""

_clock: Final = MachineClock()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One run: the store, the queue and its cost, what a worker has, which names its task has.

    With `min_share` a worker has a second queue, whose task is `BULK`: it comes after the first in strict
    order, but for that share. Worker processes write their ledger, and what they have used of the processor,
    into `folder`.
    """

    url: str = ""
    folder: str = ""
    queue: str = "default"
    cost: Cost = "jobs"
    slots: int = DEFAULT_SLOTS
    headroom: int | None = None
    min_share: float = 0.0
    tasks: tuple[str, ...] = (WORK,)

    @property
    def queues(self) -> tuple[str, ...]:
        """Name the queues of the run in their order."""
        return (self.queue, f"{self.queue}-bulk") if self.min_share else (self.queue,)

    def environment(self) -> dict[str, str]:
        """Give this process's environment with the plan, without what is set for another application."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLANE_")}
        return {**own, VARIABLE: msgspec.json.encode(self).decode()}


def read_plan(environment: Mapping[str, str]) -> Plan:
    """Give the plan that an environment holds; an empty one if it holds none."""
    return msgspec.json.decode(environment.get(VARIABLE, "{}"), type=Plan)


def make_app(plan: Plan) -> Fairlane:
    """Make the application that workers and whoever brings them jobs share.

    It has two tasks that do nothing at all, and under each name of the plan, `BULK` and those of `HELD`, one
    that takes its time and keeps the ledger.
    """
    app = Fairlane(
        plan.url or None,
        name="stage",
        config={},
        queues=[Queue(name, cost=plan.cost) for name in plan.queues],
        lanes=[_lane(plan)],
    )

    @app.task(name=ASYNC, queue=plan.queue)
    async def noop_async() -> None: ...

    @app.task(name=PLAIN, queue=plan.queue)
    def noop_plain() -> None: ...

    handler = _Handler(Path(plan.folder))
    for name in (*plan.tasks, PAUSED):
        app.task(name=name, queue=plan.queue)(handler.work)
    app.task(name=GATED, queue=plan.queue, gate=Gate(f"{plan.queue}-full", 0))(handler.work)
    app.task(name=BULK, queue=plan.queues[-1])(handler.work)
    return app


def _lane(plan: Plan) -> Lane:
    if not plan.min_share:
        return Lane("main", plan.slots, plan.queues, headroom=plan.headroom)
    first, bulk = plan.queues
    shares = {first: Share(), bulk: Share(min_share=plan.min_share)}
    return Lane("main", plan.slots, shares, order="strict", headroom=plan.headroom)


def task_of(app: Fairlane, name: str) -> Task[..., Any]:
    """Give a task of the application by its name; `LookupError` if it has none."""
    declared = app.client.registry.find(name)
    if declared is None:
        raise LookupError(name)
    return Task(declared, app)


class _Handler:
    """Takes a while, as a call to somebody else's service does, and writes down that it ran."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recorder: Recorder | None = None

    async def work(self, ctx: Context, lasts: Micros) -> None:
        """Write the first line, wait, write the last one."""
        if self._recorder is None:
            self._recorder = Recorder(self._folder / f"worker-{os.getpid()}.jsonl")
        job, pid = str(ctx.job.id), os.getpid()
        self._recorder.write(
            Started(
                job=job,
                attempt=ctx.attempt,
                fence=ctx.fence,
                worker=str(pid),
                pid=pid,
                at=_clock.elapsed(),
                tenant=ctx.tenant,
            )
        )
        if lasts:
            await _clock.wait(lasts)
        self._recorder.write(
            Ended(job=job, attempt=ctx.attempt, fence=ctx.fence, outcome="returned", at=_clock.elapsed())
        )
