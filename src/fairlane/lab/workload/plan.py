"""The plan of a run, and the application that its workers run. Opens no store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlane import Context, Fairlane, Gate, Lane, Queue, Share, Task
from fairlane.lab.ledger import Ended, Started
from fairlane.lab.workload.arrivals import WORK
from fairlane.lab.workload.recorder import Recorder
from fairlane.model.instants import Micros
from fairlane.model.policy.declared import DEFAULT_SLOTS, Cost
from fairlane.runtime.clock import MachineClock

VARIABLE: Final = "WORKLOAD_PLAN"
"""The environment variable that passes the plan to a worker process."""

ASYNC: Final = "noop-async"
PLAIN: Final = "noop-plain"
GATED: Final = "gated"
PAUSED: Final = "paused"
BULK: Final = "bulk"
HELD: Final = frozenset({GATED, PAUSED})
"""Tasks whose jobs must not run: one has a gate with limit 0, the other is paused by the scenario."""

_clock: Final = MachineClock()


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One run: the store, the queue and its cost, the slots of a worker, the names of its tasks.

    With `min_share` a worker has a second queue, whose task is `BULK`: it is second in strict order, but gets
    at least that share. Worker processes write their ledger and their CPU time into `folder`.
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
        """The queues of the run, in order."""
        return (self.queue, f"{self.queue}-bulk") if self.min_share else (self.queue,)

    def environment(self) -> dict[str, str]:
        """Return this process's environment with the plan, without any FAIRLANE_ variable."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLANE_")}
        return {**own, VARIABLE: msgspec.json.encode(self).decode()}


def read_plan(environment: Mapping[str, str]) -> RunPlan:
    """Return the plan in an environment; an empty one if there is none."""
    return msgspec.json.decode(environment.get(VARIABLE, "{}"), type=RunPlan)


def make_app(plan: RunPlan) -> Fairlane:
    """Make the application of the workers and of the process that enqueues for them.

    It has two tasks that do nothing, and one under each name of the plan, `BULK` and those of `HELD`, that
    works for a while and writes the ledger.
    """
    app = Fairlane(
        plan.url or None,
        name="workload",
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


def _lane(plan: RunPlan) -> Lane:
    if not plan.min_share:
        return Lane("main", plan.slots, plan.queues, headroom=plan.headroom)
    first, bulk = plan.queues
    shares = {first: Share(), bulk: Share(min_share=plan.min_share)}
    return Lane("main", plan.slots, shares, order="strict", headroom=plan.headroom)


def task_of(app: Fairlane, name: str) -> Task[..., Any]:
    """Return a task of the application by name; `LookupError` if there is none."""
    declared = app.client.registry.find(name)
    if declared is None:
        raise LookupError(name)
    return Task(declared, app)


class _Handler:
    """Waits for a while, like a call to another service, and records that it ran."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recorder: Recorder | None = None

    async def work(self, ctx: Context, duration: Micros) -> None:
        """Record the start, wait, record the end."""
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
        if duration:
            await _clock.wait(duration)
        self._recorder.write(
            Ended(job=job, attempt=ctx.attempt, fence=ctx.fence, outcome="returned", at=_clock.elapsed())
        )
