"""`fairlane gates`: the limit of each gate, and how much of it is free."""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec

from fairlane import Fairlane, GateView
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.policies import hold_fields, hold_json, rate_text
from fairlane.model.instants import Instant


@click.group(cls=Group, lists=True)
def gates() -> None:
    """Show gates: list, show. Default: list."""


@gates.command("list", cls=Command)
@click.pass_obj
def list_gates(invocation: Invocation) -> None:
    """List all gates with their limit, what is used and what is free."""
    found = invocation.run(lambda app: app.gates.alist())
    invocation.output.table(found, _VIEW, empty="No gate is known yet.")


@gates.command(cls=Command)
@click.argument("name", type=value_types.GATE)
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show one gate: its limit, what is used and free, and what overrides its declaration."""

    async def read(app: Fairlane) -> tuple[GateView, Instant]:
        return await app.gates.aget(name), await now_of(app)

    gate, now = invocation.run(read)
    fields: dict[str, Cell] = {
        "gate": gate.name,
        "limit": "none" if gate.limit is None else gate.limit,
        "used": gate.used,
        "free": gate.free,
        "rate": rate_text(gate.rate),
        **hold_fields(None, None, gate.override, now),
    }
    invocation.output.record(fields, _as_json(gate))


def _as_json(gate: GateView) -> dict[str, Any]:
    return {
        "name": gate.name,
        "limit": gate.limit,
        "used": gate.used,
        "free": gate.free,
        "rate": msgspec.to_builtins(gate.rate),
        "override": hold_json(None, None, gate.override).get("override"),
    }


_VIEW: Final[TableView[GateView]] = TableView(
    {
        "GATE": lambda gate: gate.name,
        "LIMIT": lambda gate: gate.limit,
        "USED": lambda gate: gate.used,
        "FREE": lambda gate: gate.free,
        "RATE": lambda gate: rate_text(gate.rate),
        "SET BY": lambda gate: None if gate.override is None else gate.override.who,
    },
    _as_json,
)
