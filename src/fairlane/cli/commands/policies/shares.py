"""`fairlane tenants shares`: who holds how many slots, what is fair, who slows whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import click
import msgspec

from fairlane import Fairlane, SharedQueue, SlotHolder, TenantShare, TenantShares
from fairlane.app.admin.shares.views import FILTERS, ORDERS, ShareFilter, ShareOrder
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.cli.render.policies import hold_state
from fairlane.cli.shared_options import labels_option
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, to_instant
from fairlane.store.contract.request import MAX_PAGE_SIZE

_NAMED: Final = 5
"""How many tenants a sentence names."""


@click.command(cls=Command)
@click.option(
    "--order", type=click.Choice(ORDERS), default="impact", show_default=True, help="Which come first."
)
@click.option("--only", type=click.Choice(FILTERS), default="all", show_default=True, help="Which at all.")
@click.option("--name", default="", help="Those with this in their name.")
@labels_option
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_PAGE_SIZE),
    default=50,
    show_default=True,
    help="The maximum number of tenants.",
)
@click.option("--cursor", help="Continue where the previous page ended.")
@click.pass_obj
def shares(
    invocation: Invocation,
    *,
    order: ShareOrder,
    only: ShareFilter,
    name: str,
    labels: tuple[tuple[str, str], ...],
    limit: int,
    cursor: str | None,
) -> None:
    """Compare tenants: slots held and fair shares, who slows whom, who waits since when."""

    async def read(app: Fairlane) -> tuple[TenantShares, Instant]:
        found = await app.tenants.ashares(
            order=order, only=only, name=name, labels=dict(labels), limit=limit, cursor=cursor
        )
        return found, await now_of(app)

    try:
        found, now = invocation.run(read)
    except ValueError as error:  # an invalid cursor
        raise click.UsageError(str(error)) from None
    invocation.output.table(found.items, _view(now), empty="No such tenant.")
    if not invocation.output.is_json:
        for queue in found.queues:
            if queue.slowed:
                invocation.output.line(contention_text(queue, now))
    if not found.is_complete:
        invocation.output.note("There are more tenants than are read at once: the last by name are missing.")
    if found.cursor is not None:
        invocation.output.note(f"There are more: continue with --cursor {found.cursor}")


def contention_text(queue: SharedQueue, now: Instant) -> str:
    """Say who slows whom in a queue."""
    over = ", ".join(
        f"{one.tenant} holds {one.running} slots, of which {one.fair:g} are its share"
        for one in queue.over[:_NAMED]
    )
    return f"Queue {queue.queue}: {over}. It slows {_slowed(queue.slowed, queue.sloweds, now)}."


def _slowed(slowed: Sequence[SlotHolder], all_slowed: int, now: Instant) -> str:
    named = [f"{one.tenant} (waits since {ago(_instant(one.waits_since), now)})" for one in slowed[:_NAMED]]
    more = all_slowed - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])


def _instant(moment: Any) -> Instant | None:
    return None if moment is None else to_instant(moment)


def _standing(share: TenantShare) -> str:
    states = [hold_state(share.paused, share.closed)]
    states += ["slows others"] * share.is_over + ["slowed"] * share.is_slowed
    return ", ".join(state for state in states if state)


def _view(now: Instant) -> TableView[TenantShare]:
    return TableView(
        {
            "TENANT": lambda share: share.tenant,
            "WEIGHT": lambda share: f"{share.weight:g}",
            "RUNNING": lambda share: share.running,
            "FAIR": lambda share: f"{share.fair:g}",
            "READY": lambda share: share.ready,
            "DELAYED": lambda share: share.delayed,
            "DEAD": lambda share: share.dead,
            "WAITS SINCE": lambda share: (
                None if share.waits_since is None else ago(_instant(share.waits_since), now)
            ),
            "STANDING": _standing,
        },
        lambda share: msgspec.to_builtins(asdict(share)),
    )
