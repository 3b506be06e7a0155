"""`fairlane queues`: what is in each queue, and what holds for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import click
import msgspec

from fairlane import Fairlane, Limits, QueueStats, Rate, State
from fairlane.app.stats import LOOK_MOST
from fairlane.app.views import Held, Overridden, QueueView
from fairlane.cli import kinds
from fairlane.cli.command import Command, Group
from fairlane.cli.moments import ago, iso, moment
from fairlane.cli.output import Cell, View
from fairlane.cli.session import Session, now_of
from fairlane.model.instants import Instant, to_instant


@click.group(cls=Group, lists=True)
def queues() -> None:
    """Look at queues: list, show, stats. Without one of these: list."""


@queues.command("list", cls=Command)
@click.pass_obj
def list_queues(session: Session) -> None:
    """List all queues with their jobs by state."""
    found = session.run(lambda app: app.queues.alist())
    session.output.table(found, _VIEW, empty="No queue is known yet.")


@queues.command(cls=Command)
@click.argument("name", type=kinds.QUEUE, required=False)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=LOOK_MOST,
    show_default=True,
    help="How many delayed and how many ready jobs are looked at, at the most.",
)
@click.pass_obj
def stats(session: Session, name: str | None, *, most: int) -> None:
    """Show what is in a queue, or in each: jobs by state, how many retry, how long the oldest has waited."""

    async def read(app: Fairlane) -> list[QueueStats]:
        if name is not None:
            return [await app.queues.astats(name, most=most)]
        return list((await app.queues.astats(most=most)).values())

    found = session.run(read)
    session.output.table(found, _STATS, empty="No queue is known yet.")
    if not all(one.is_complete for one in found):
        session.output.remark("Not all jobs were looked at: more may retry, and an older one may wait.")


def _oldest(stats: QueueStats) -> str | None:
    return None if stats.oldest_minutes is None else f"{stats.oldest_minutes:.1f} min"


_STATS: Final[View[QueueStats]] = View(
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
@click.argument("name", type=kinds.QUEUE)
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show one queue: its jobs, its limits, what was set above them, pauses."""

    async def read(app: Fairlane) -> tuple[QueueView, Instant]:
        return await app.queues.aget(name), await now_of(app)

    queue, now = session.run(read)
    fields: dict[str, Cell] = {
        "queue": queue.name,
        **{state.value: queue.counts[state] for state in State},
        "each tenant": limits_text(queue.limits),
        "rate": rate_text(queue.rate),
        "max waiting": queue.max_waiting,
        "cost": queue.cost,
        **hold_fields(queue.paused, queue.closed, queue.override, now),
    }
    session.output.record(fields, queue_json(queue))


def queue_json(queue: QueueView) -> dict[str, Any]:
    """Give all of a queue, for programs."""
    return {
        "name": queue.name,
        "counts": counts_json(queue.counts),
        "limits": msgspec.to_builtins(queue.limits),
        "rate": msgspec.to_builtins(queue.rate),
        "max_waiting": queue.max_waiting,
        "cost": queue.cost,
        **hold_json(queue.paused, queue.closed, queue.override),
    }


_VIEW: Final[View[QueueView]] = View(
    {
        "QUEUE": lambda queue: queue.name,
        **{
            state.value.upper(): (lambda queue, state=state: queue.counts[state])  # type: ignore[misc]
            for state in State
        },
        "HELD": lambda queue: held_word(queue.paused, queue.closed),
    },
    queue_json,
)


def counts_json(counts: Mapping[State, int]) -> dict[str, int]:
    """Give counts by the names of states."""
    return {state.value: number for state, number in counts.items()}


def held_word(paused: Held | None, closed: Held | None) -> str:
    """Say in a word what is held."""
    return ", ".join(word for word, hold in (("paused", paused), ("closed", closed)) if hold is not None)


def rate_text(rate: Rate | None) -> str | None:
    """Write a rate as `limits --rate` reads it.

    >>> rate_text(Rate(50, "minute", 5)), rate_text(Rate(10, "second"))
    ('50/minute, burst 5', '10/second')
    """
    if rate is None:
        return None
    return f"{rate.limit}/{rate.per}" + (f", burst {rate.burst}" if rate.burst > 1 else "")


def limits_text(limits: Limits) -> str:
    """Write limits in words.

    >>> limits_text(Limits(waiting=500, running=4)), limits_text(Limits())
    ('500 waiting (warn), 4 running', 'no limit')
    """
    parts: list[str] = []
    if limits.waiting is not None:
        parts.append(f"{limits.waiting} waiting ({limits.on_full})")
    if limits.running is not None:
        parts.append(f"{limits.running} running")
    if limits.rate is not None:
        parts.append(f"{rate_text(limits.rate)}")
    return ", ".join(parts) or "no limit"


def hold_fields(
    paused: Held | None, closed: Held | None, override: Overridden | None, now: Instant
) -> dict[str, Cell]:
    """Give who has paused, closed or changed something, for people."""
    fields: dict[str, Cell] = {}
    for word, hold in (("paused", paused), ("closed", closed)):
        if hold is not None:
            ends = "" if hold.until is None else f", until {moment(to_instant(hold.until), now)}"
            fields[word] = f"by {hold.who} {ago(to_instant(hold.since), now)}: {hold.reason}{ends}"
    if override is not None:
        ends = "" if override.until is None else f", until {moment(to_instant(override.until), now)}"
        why = f": {override.note}" if override.note else ""
        names = ", ".join(override.values)
        fields["set"] = f"{names}, by {override.who} {ago(to_instant(override.since), now)}{why}{ends}"
    return fields


def hold_json(paused: Held | None, closed: Held | None, override: Overridden | None) -> dict[str, Any]:
    """Give who has paused, closed or changed something, for programs."""
    holds: dict[str, Any] = {
        word: None
        if hold is None
        else {"who": hold.who, "reason": hold.reason, "since": iso(hold.since), "until": iso(hold.until)}
        for word, hold in (("paused", paused), ("closed", closed))
    }
    if override is not None:
        holds["override"] = {
            "values": msgspec.to_builtins(dict(override.values)),
            "who": override.who,
            "note": override.note,
            "since": iso(override.since),
            "until": iso(override.until),
        }
    return holds
