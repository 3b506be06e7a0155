"""`fairlane queues`: the jobs in each queue, and its limits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click
import msgspec

from fairlane import Fairlane, QueueStats, RateView, State
from fairlane.app.admin.queue_stats import MAX_LOOKED_AT
from fairlane.app.admin.views import QueueView
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.policies import (
    counts_json,
    hold_fields,
    hold_json,
    hold_state,
    limits_text,
    rate_text,
)
from fairlane.cli.render.times import timestamp_and_age
from fairlane.cli.shared_options import required_note
from fairlane.model.instants import Instant, iso, to_instant


@click.group(cls=Group, lists=True)
def queues() -> None:
    """Show and remove queues: list, show, stats, rates, remove. Default: list."""


@queues.command("list", cls=Command)
@click.pass_obj
def list_queues(invocation: Invocation) -> None:
    """List all queues with their jobs by state."""
    found = invocation.run(lambda app: app.queues.alist())
    invocation.output.table(found, _VIEW, empty="No queue is known yet.")


@queues.command(cls=Command)
@click.argument("name", type=value_types.QUEUE, required=False)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=MAX_LOOKED_AT,
    show_default=True,
    help="The maximum number of delayed jobs and of ready jobs to read.",
)
@click.pass_obj
def stats(invocation: Invocation, name: str | None, *, most: int) -> None:
    """Show jobs by state, the number of retries, and the wait of the oldest job, for one queue or for all."""

    async def read(app: Fairlane) -> list[QueueStats]:
        if name is not None:
            return [await app.queues.astats(name, most=most)]
        return list((await app.queues.astats(most=most)).values())

    found = invocation.run(read)
    invocation.output.table(found, _STATS, empty="No queue is known yet.")
    if not all(one.is_complete for one in found):
        invocation.output.note("Not all jobs were read: there may be more retries, or an older job.")


def _oldest(stats: QueueStats) -> str | None:
    return None if stats.oldest_minutes is None else f"{stats.oldest_minutes:.1f} min"


_STATS: Final[TableView[QueueStats]] = TableView(
    {
        "QUEUE": lambda stats: stats.name,
        "READY": lambda stats: stats.ready,
        "RUNNING": lambda stats: stats.running,
        "DELAYED": lambda stats: stats.delayed,
        "RETRYING": lambda stats: stats.retrying,
        "DEAD": lambda stats: stats.dead,
        "OLDEST": _oldest,
    },
    lambda stats: {**asdict(stats), "because": dict(stats.because), "oldest_at": iso(stats.oldest_at)},
)


@queues.command(cls=Command)
@click.argument("name", type=value_types.QUEUE)
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show one queue: its jobs, limits, overrides and pauses."""

    async def read(app: Fairlane) -> tuple[QueueView, Instant]:
        return await app.queues.aget(name), await now_of(app)

    queue, now = invocation.run(read)
    fields: dict[str, Cell] = {
        "queue": queue.name,
        **{state.value: queue.counts[state] for state in State},
        "each tenant": limits_text(queue.limits),
        "rate": rate_text(queue.rate),
        "max waiting": queue.max_waiting,
        "cost": queue.cost,
        **hold_fields(queue.paused, queue.closed, queue.override, now),
    }
    invocation.output.record(fields, queue_json(queue))


@queues.command(cls=Command)
@click.argument("name", type=value_types.QUEUE)
@click.pass_obj
def rates(invocation: Invocation, name: str) -> None:
    """Show how many starts the rates in a queue allow now, and when the next one."""

    async def read(app: Fairlane) -> tuple[list[RateView], Instant]:
        return list(await app.queues.arates(name)), await now_of(app)

    found, now = invocation.run(read)
    invocation.output.table(found, _rates(now), empty=f"Nothing in queue {name} has a rate.")


@queues.command(cls=Command)
@click.argument("name", type=value_types.QUEUE)
@required_note
@click.pass_obj
def remove(invocation: Invocation, name: str, *, note: str) -> None:
    """Remove a queue in which no job waits or runs: its limits, overrides, pause and close.

    Finished jobs stay as long as they are kept. A worker that declares the queue declares it again.
    """
    invocation.run(lambda app: app.queues.aremove(name, note=note, who=invocation.who))
    invocation.output.answer(f"Removed queue {name}.", {"removed": name})


def _rates(now: Instant) -> TableView[RateView]:
    return TableView(
        {
            "OF": lambda one: f"{one.kind} {one.name}",
            "RATE": lambda one: rate_text(one.rate),
            "ALLOWED NOW": lambda one: one.allowed,
            "NEXT START": lambda one: timestamp_and_age(to_instant(one.next_at), now),
            "READY": lambda one: one.ready,
        },
        lambda one: {**asdict(one), "next_at": iso(one.next_at)},
    )


def queue_json(queue: QueueView) -> dict[str, Any]:
    """Return everything about a queue, for programs."""
    return {
        "name": queue.name,
        "counts": counts_json(queue.counts),
        "limits": msgspec.to_builtins(queue.limits),
        "rate": msgspec.to_builtins(queue.rate),
        "max_waiting": queue.max_waiting,
        "cost": queue.cost,
        **hold_json(queue.paused, queue.closed, queue.override),
    }


_VIEW: Final[TableView[QueueView]] = TableView(
    {
        "QUEUE": lambda queue: queue.name,
        **{
            state.value.upper(): (lambda queue, state=state: queue.counts[state])  # type: ignore[misc]
            for state in State
        },
        "HELD": lambda queue: hold_state(queue.paused, queue.closed),
    },
    queue_json,
)
