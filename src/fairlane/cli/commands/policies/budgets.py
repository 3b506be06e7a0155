"""`fairlane budgets`: what is spent of each budget, by whom, and the ceiling at run time (S59, S114)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import click

from fairlane import BudgetAccount, BudgetView, Fairlane, SpendView
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.policies import hold_fields, hold_json
from fairlane.cli.render.times import timestamp_and_age
from fairlane.cli.shared_options import end_of, note, with_end
from fairlane.model.instants import Instant, iso, to_datetime, to_instant
from fairlane.model.policy.amounts import to_decimal, to_millionths

_BUDGET: Final = value_types.BUDGET


def _amount(text: str) -> Decimal:
    return to_decimal(to_millionths(text))


@click.group(cls=Group, lists=True)
def budgets() -> None:
    """Show and change budgets: list, show, set, reset, spend. Default: list."""


@budgets.command("list", cls=Command)
@click.pass_obj
def list_budgets(invocation: Invocation) -> None:
    """List all budgets with their ceiling, what is spent, and when that runs out."""

    async def read(app: Fairlane) -> tuple[list[BudgetView], Instant]:
        return list(await app.budgets.alist()), await now_of(app)

    found, now = invocation.run(read)
    invocation.output.table(found, _view(now), empty="No budget is known yet.")


@budgets.command(cls=Command)
@click.argument("name", type=_BUDGET)
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show one budget: its ceiling, what is spent and reserved, until when, and what overrides it."""
    _show(invocation, *invocation.run(lambda app: _read(app, name)))


@budgets.command("set", cls=Command)
@click.argument("name", type=_BUDGET)
@click.argument("ceiling", type=value_types.ValueType("amount", _amount))
@note
@with_end
@click.pass_obj
def set_ceiling(
    invocation: Invocation,
    /,
    *,
    name: str,
    ceiling: Decimal,
    note: str,
    until: datetime | None,
    duration: float | None,
) -> None:
    """Override the ceiling of a budget, in its currency; 0 lets no job start.

    It counts at the next claim and survives deploys. What was spent stays counted, and running jobs go on.
    """

    async def work(app: Fairlane) -> tuple[BudgetView, Instant]:
        end = end_of(until, duration, await now_of(app))
        ends = None if end is None else to_datetime(end)
        try:
            await app.budgets.aset(name, ceiling=ceiling, note=note, until=ends, who=invocation.who)
        except ValueError as error:  # another end than before; the values were checked
            message = str(error).replace("give the same until=", "give the same --until")
            raise click.UsageError(message) from None
        return await _read(app, name)

    _show(invocation, *invocation.run(work))


@budgets.command(cls=Command)
@click.argument("name", type=_BUDGET)
@note
@click.pass_obj
def reset(invocation: Invocation, /, *, name: str, note: str) -> None:
    """Remove the override: the declared ceiling applies again."""

    async def work(app: Fairlane) -> tuple[BudgetView, Instant]:
        await app.budgets.areset(name, note=note, who=invocation.who)
        return await _read(app, name)

    _show(invocation, *invocation.run(work))


@budgets.command(cls=Command)
@click.argument("name", type=_BUDGET)
@click.option("--by", type=click.Choice(["task", "tenant", "creator"]), help="Only by one of these.")
@click.option("--period", type=value_types.TIME, help="The period that began then. Default: the last one.")
@click.pass_obj
def spend(invocation: Invocation, /, *, name: str, by: str | None, period: datetime | None) -> None:
    """Show who has spent what in a period: by task, by tenant and by who created the jobs."""
    found = invocation.run(lambda app: app.budgets.aspend(name, period=period))
    rows = [
        (kind, who, spent)
        for kind, parts in (
            ("task", found.by_task),
            ("tenant", found.by_tenant),
            ("creator", found.by_creator),
        )
        if by in {None, kind}
        for who, spent in parts.items()
    ]
    invocation.output.table(rows, _spend_view(found), empty="Nothing was spent.")


async def _read(app: Fairlane, name: str) -> tuple[BudgetView, Instant]:
    return await app.budgets.aget(name), await now_of(app)


def _show(invocation: Invocation, budget: BudgetView, now: Instant) -> None:
    fields: dict[str, Cell] = {
        "budget": budget.name,
        "ceiling": "none" if budget.ceiling is None else f"{budget.ceiling} {budget.currency}",
        "per": f"{budget.per} ({budget.timezone}){', each tenant' if budget.per_tenant else ''}",
        "estimate": str(budget.estimate),
        "on spent": budget.on_spent,
    }
    for account in budget.accounts:
        of = "" if account.tenant is None else f" by {account.tenant}"
        fields[f"spent{of}"] = f"{account.spent}{_share(account.spent, budget.ceiling)}"
        fields[f"reserved{of}"] = str(account.reserved)
        if account.runs_out_at is not None:
            fields[f"runs out{of}"] = timestamp_and_age(to_instant(account.runs_out_at), now)
        if account.period_end is not None:
            fields["period ends"] = timestamp_and_age(to_instant(account.period_end), now)
    fields |= hold_fields(None, None, budget.override, now)
    invocation.output.record(fields, _as_json(budget))


def _share(spent: Decimal, ceiling: Decimal | None) -> str:
    return f" ({spent / ceiling:.0%})" if ceiling else ""


def _as_json(budget: BudgetView) -> dict[str, Any]:
    return {
        "name": budget.name,
        "ceiling": None if budget.ceiling is None else str(budget.ceiling),
        "currency": budget.currency,
        "per": budget.per,
        "timezone": budget.timezone,
        "estimate": str(budget.estimate),
        "on_spent": budget.on_spent,
        "per_tenant": budget.per_tenant,
        "alert_at": [float(share) for share in budget.alert_at],
        "accounts": [_account_json(account) for account in budget.accounts],
        "override": hold_json(None, None, budget.override).get("override"),
    }


def _account_json(account: BudgetAccount) -> dict[str, Any]:
    return {
        "tenant": account.tenant,
        "spent": str(account.spent),
        "reserved": str(account.reserved),
        "period_start": iso(account.period_start),
        "period_end": iso(account.period_end),
        "runs_out_at": iso(account.runs_out_at),
        "is_spent": account.is_spent,
    }


def _view(now: Instant) -> TableView[BudgetView]:
    def most(budget: BudgetView) -> BudgetAccount | None:
        return max(budget.accounts, key=lambda one: one.spent, default=None)

    def spent(budget: BudgetView) -> str:
        account = most(budget)
        return "0.00" if account is None else f"{account.spent}{_share(account.spent, budget.ceiling)}"

    def runs_out(budget: BudgetView) -> str | None:
        account = most(budget)
        if account is None:
            return None
        if account.is_spent:
            return "spent"
        found = account.runs_out_at
        return None if found is None else timestamp_and_age(to_instant(found), now)

    return TableView(
        {
            "BUDGET": lambda one: one.name,
            "CEILING": lambda one: "none" if one.ceiling is None else f"{one.ceiling} {one.currency}",
            "PER": lambda one: one.per,
            "SPENT": spent,
            "RUNS OUT": runs_out,
            "ON SPENT": lambda one: one.on_spent,
            "SET BY": lambda one: None if one.override is None else one.override.who,
        },
        _as_json,
    )


def _spend_view(found: SpendView) -> TableView[tuple[str, str | None, Decimal]]:
    def as_json(row: tuple[str, str | None, Decimal]) -> dict[str, Any]:
        kind, who, spent = row
        period = iso(found.period_start)
        return {
            "by": kind,
            "name": who,
            "spent": str(spent),
            "currency": found.currency,
            "period_start": period,
        }

    return TableView(
        {
            "BY": lambda row: row[0],
            "NAME": lambda row: row[1],
            f"SPENT {found.currency}".rstrip(): lambda row: str(row[2]),
        },
        as_json,
    )
