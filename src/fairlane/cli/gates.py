"""`fairlane gates`: how many places each gate has, and how many are free."""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec

from fairlane import Fairlane, GateView
from fairlane.cli import kinds
from fairlane.cli.command import Command, Group
from fairlane.cli.output import Cell, View
from fairlane.cli.queues import hold_fields, hold_json, rate_text
from fairlane.cli.session import Session, now_of
from fairlane.model.instants import Instant


@click.group(cls=Group, lists=True)
def gates() -> None:
    """Look at gates: list, show. Without one of these: list."""


@gates.command("list", cls=Command)
@click.pass_obj
def list_gates(session: Session) -> None:
    """List all gates with their free places."""
    found = session.run(lambda app: app.gates.alist())
    session.output.table(found, _VIEW, empty="No gate is known yet.")


@gates.command(cls=Command)
@click.argument("name", type=kinds.GATE)
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show one gate: its limit, who holds how many places, what was set above what is declared."""

    async def read(app: Fairlane) -> tuple[GateView, Instant]:
        return await app.gates.aget(name), await now_of(app)

    gate, now = session.run(read)
    fields: dict[str, Cell] = {
        "gate": gate.name,
        "limit": "none" if gate.limit is None else gate.limit,
        "used": gate.used,
        "free": gate.free,
        "rate": rate_text(gate.rate),
        **hold_fields(None, None, gate.override, now),
    }
    session.output.record(fields, _as_json(gate))


def _as_json(gate: GateView) -> dict[str, Any]:
    return {
        "name": gate.name,
        "limit": gate.limit,
        "used": gate.used,
        "free": gate.free,
        "rate": msgspec.to_builtins(gate.rate),
        "override": hold_json(None, None, gate.override).get("override"),
    }


_VIEW: Final[View[GateView]] = View(
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
