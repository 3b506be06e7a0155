"""`fairlane breakers`: what each circuit breaker is now, and by hand: open, close, reset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final, TypeVar

import click

from fairlane import BreakerView, Fairlane
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.times import timestamp_and_age
from fairlane.cli.shared_options import end_of, note, required_note, with_end
from fairlane.model.instants import Instant, iso, to_datetime, to_instant

F = TypeVar("F", bound=Callable[..., Any])

_NAME: Final = click.argument("name", type=value_types.BREAKER)
_TENANT: Final = click.option("--tenant", type=value_types.TENANT, help="What it is for this tenant alone.")


@click.group(cls=Group, lists=True)
def breakers() -> None:
    """Show and change circuit breakers: list, show, open, close, reset. Default: list."""


@breakers.command("list", cls=Command)
@click.pass_obj
def list_breakers(invocation: Invocation) -> None:
    """List all breakers: what each is, until when, and who waits for it."""
    found = invocation.run(lambda app: app.breakers.alist())
    invocation.output.table(found, _VIEW, empty="No breaker is known yet.")


@breakers.command(cls=Command)
@_NAME
@_TENANT
@click.pass_obj
def show(invocation: Invocation, name: str, tenant: str | None) -> None:
    """Show one breaker: its state, what it has counted, and its rules."""

    async def read(app: Fairlane) -> tuple[BreakerView, Instant]:
        return await app.breakers.aget(name, tenant=tenant), await now_of(app)

    one, now = invocation.run(read)
    fields: dict[str, Cell] = {
        "breaker": one.name,
        "tenant": one.tenant,
        "state": one.state.replace("_", "-"),
        "lets pass from": _when(one.until, now),
        "at once": "all" if one.slots is None else one.slots,
        "passing": one.passing,
        "waiting": one.waiting,
        "recent failures": f"{one.recent_failures} of {one.failures} in {one.window:g} s",
        "succeeded": one.succeeded,
        "failed": one.failed,
        "opened": f"{one.trips} times" if one.trips != 1 else "once",
        "last failure": _when(one.last_failure_at, now),
        "last opened": _when(one.opened_at, now),
        "half-opened": _when(one.half_opened_at, now),
        "closed": _when(one.closed_at, now),
        "open for": f"{one.open_for:g} s",
        "per": one.per,
        "on open": one.on_open,
        "ramp": one.ramp,
    }
    if one.forced is not None:
        until = "until it is reset" if one.forced.until is None else f"until {_when(one.forced.until, now)}"
        fields["set by"] = f"{one.forced.who}, {until}: {one.forced.reason}"
    invocation.output.record(fields, _as_json(one))


@breakers.command("open", cls=Command)
@_NAME
@_TENANT
@required_note
@with_end
@click.pass_obj
def open_(invocation: Invocation, /, **options: Any) -> None:
    """Let nobody pass a breaker: jobs of its tasks wait.

    At the end of that time one job passes first. Without an end it stays open until it is closed or reset.
    """
    _force(invocation, "open", **options)


@breakers.command(cls=Command)
@_NAME
@_TENANT
@required_note
@with_end
@click.pass_obj
def close(invocation: Invocation, /, **options: Any) -> None:
    """Let everybody pass a breaker, whatever fails.

    Without an end that holds until it is opened or reset.
    """
    _force(invocation, "closed", **options)


@breakers.command(cls=Command)
@_NAME
@_TENANT
@note
@click.pass_obj
def reset(invocation: Invocation, name: str, tenant: str | None, note: str) -> None:
    """Close a breaker with nothing counted, and end what was forced."""

    async def work(app: Fairlane) -> BreakerView:
        await _check(app, name)
        return await app.breakers.areset(name, tenant=tenant, note=note, who=invocation.who)

    one = invocation.run(work)
    invocation.output.answer(f"breaker {name} is {one.state}, with nothing counted.", _as_json(one))


def _force(
    invocation: Invocation,
    state: str,
    *,
    name: str,
    tenant: str | None,
    note: str,
    until: datetime | None,
    duration: float | None,
) -> None:
    async def work(app: Fairlane) -> tuple[BreakerView, datetime | None, Instant]:
        await _check(app, name)
        now = await now_of(app)
        instant = end_of(until, duration, now)
        end = None if instant is None else to_datetime(instant)
        verb = app.breakers.aopen if state == "open" else app.breakers.aclose
        return await verb(name, reason=note, tenant=tenant, until=end, who=invocation.who), end, now

    one, end, now = invocation.run(work)
    ends = "until `fairlane breakers reset`" if end is None else f"until {_when(end, now)}"
    invocation.output.answer(f"breaker {name} is {state}, {ends}.", _as_json(one))


async def _check(app: Fairlane, name: str) -> None:
    known = {one.name for one in await app.breakers.alist()}
    if name not in known:
        message = f"there is no breaker {name}; `fairlane breakers` lists all"
        raise click.BadParameter(message, param_hint="NAME")


def _when(moment: datetime | None, now: Instant) -> str | None:
    return None if moment is None else timestamp_and_age(to_instant(moment), now)


def _as_json(one: BreakerView) -> dict[str, Any]:
    return asdict(one, dict_factory=_with_times)


def _with_times(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: iso(value) if isinstance(value, datetime) else value for name, value in fields}


_VIEW: Final[TableView[BreakerView]] = TableView(
    {
        "BREAKER": lambda one: one.name,
        "TENANT": lambda one: one.tenant,
        "STATE": lambda one: one.state.replace("_", "-"),
        "LETS PASS FROM": lambda one: None if one.until is None else f"{one.until:%Y-%m-%d %H:%M:%S} UTC",
        "AT ONCE": lambda one: "all" if one.slots is None else one.slots,
        "WAITING": lambda one: one.waiting,
        "FAILURES": lambda one: f"{one.recent_failures}/{one.failures}",
        "OPENED": lambda one: one.trips,
        "SET BY": lambda one: None if one.forced is None else one.forced.who,
    },
    _as_json,
)
