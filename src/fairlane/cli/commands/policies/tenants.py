"""`fairlane tenants`: the tenants, their jobs and limits; purge or forget a tenant."""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec

from fairlane import Fairlane, Page, State, Tenant
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.policies.pause import drain_options, drain_subject
from fairlane.cli.commands.policies.shares import shares
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import Cell, TableView
from fairlane.cli.render.policies import counts_json, hold_fields, hold_json, hold_state, limits_text
from fairlane.cli.shared_options import labels_option, required_note
from fairlane.model.instants import Instant
from fairlane.model.policy.overrides import SubjectKind
from fairlane.store.contract.request import MAX_PAGE_SIZE


@click.group(cls=Group, lists=True)
def tenants() -> None:
    """Show and clear tenants: list, shares, show, drain, purge, forget. Default: list."""


tenants.add_command(shares)


@tenants.command("list", cls=Command)
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
def list_tenants(
    invocation: Invocation, *, labels: tuple[tuple[str, str], ...], limit: int, cursor: str | None
) -> None:
    """List tenants by name with their unfinished and dead jobs."""
    try:
        page: Page[Tenant] = invocation.run(
            lambda app: app.tenants.alist(labels=dict(labels), limit=limit, cursor=cursor)
        )
    except ValueError as error:  # an invalid label or cursor
        raise click.UsageError(str(error)) from None
    invocation.output.table(page.items, _VIEW, empty="No tenant is known yet.")
    if page.cursor is not None:
        invocation.output.note(f"There may be more: continue with --cursor {page.cursor}")


@tenants.command(cls=Command)
@click.argument("name", type=value_types.TENANT)
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show one tenant: its weight, its limits and jobs by queue, overrides and pauses."""

    async def read(app: Fairlane) -> tuple[Tenant, Instant]:
        return await app.tenants.aget(name), await now_of(app)

    tenant, now = invocation.run(read)
    fields: dict[str, Cell] = {
        "tenant": tenant.name,
        "weight": f"{tenant.weight:g}",
        "labels": ", ".join(f"{key}={value}" for key, value in sorted(tenant.labels.items())),
        "limits": "\n".join(
            f"{queue}: {limits_text(limits)}" for queue, limits in sorted(tenant.limits.items())
        ),
        "jobs": "\n".join(f"{queue}: {_counted(tenant, queue)}" for queue in sorted(tenant.counts)),
        **hold_fields(tenant.paused, tenant.closed, tenant.override, now),
    }
    invocation.output.record(fields, tenant_json(tenant))


def _counted(tenant: Tenant, queue: str) -> str:
    return ", ".join(f"{number} {state.value}" for state, number in tenant.counts[queue].items() if number)


@tenants.command(cls=Command)
@click.argument("name", type=value_types.TENANT)
@drain_options
@click.pass_obj
def drain(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Pause or close a tenant, and wait until none of its jobs runs.

    The tenant stays paused or closed afterwards, also after a timeout (exit code 1) or an interrupt.
    """
    drain_subject(invocation, SubjectKind.TENANT, name, **options)


@tenants.command(cls=Command)
@click.argument("name", type=value_types.TENANT)
@click.option("--queue", type=value_types.QUEUE, help="Only in this queue.")
@required_note
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def purge(invocation: Invocation, name: str, *, queue: str | None, note: str, yes: bool) -> None:
    """Cancel all waiting jobs of a tenant; running jobs continue."""
    where = "" if queue is None else f" in queue {queue}"
    invocation.confirm(f"Cancel all waiting jobs of tenant {name}{where}?", yes=yes)
    number = invocation.run(
        lambda app: app.tenants.apurge(name, queue=queue, reason=note, who=invocation.who)
    )
    invocation.output.answer(
        f"{number} job(s) of tenant {name}{where} cancelled.", {"tenant": name, "cancelled": number}
    )


@tenants.command(cls=Command)
@click.argument("name", type=value_types.TENANT)
@required_note
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def forget(invocation: Invocation, name: str, *, note: str, yes: bool) -> None:
    """Erase a tenant's payloads, results, errors and keys, and cancel its waiting jobs.

    Its schedules and its names in budgets go, too. Counts stay, and what it has spent stays counted.
    """
    invocation.confirm(f"Permanently erase the data of all jobs of tenant {name}?", yes=yes)
    number = invocation.run(lambda app: app.tenants.aforget(name, reason=note, who=invocation.who))
    invocation.output.answer(f"{number} job(s) of tenant {name} erased.", {"tenant": name, "erased": number})


def _total(tenant: Tenant, state: State) -> int:
    return sum(counts[state] for counts in tenant.counts.values())


def tenant_json(tenant: Tenant) -> dict[str, Any]:
    """Return everything about a tenant, for programs."""
    return {
        "name": tenant.name,
        "weight": tenant.weight,
        "labels": dict(tenant.labels),
        "limits": {queue: msgspec.to_builtins(limits) for queue, limits in tenant.limits.items()},
        "counts": {queue: counts_json(counts) for queue, counts in tenant.counts.items()},
        **hold_json(tenant.paused, tenant.closed, tenant.override),
    }


_VIEW: Final[TableView[Tenant]] = TableView(
    {
        "TENANT": lambda tenant: tenant.name,
        "WEIGHT": lambda tenant: f"{tenant.weight:g}",
        "DELAYED": lambda tenant: _total(tenant, State.DELAYED),
        "READY": lambda tenant: _total(tenant, State.READY),
        "RUNNING": lambda tenant: _total(tenant, State.RUNNING),
        "DEAD": lambda tenant: _total(tenant, State.DEAD),
        "HELD": lambda tenant: hold_state(tenant.paused, tenant.closed),
    },
    tenant_json,
)
