"""`fairlane tenants`: who has jobs, what each may, and how to clear or erase a tenant."""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec

from fairlane import Fairlane, Page, State, Tenant
from fairlane.cli import kinds
from fairlane.cli.command import Command, Group
from fairlane.cli.holds import drain_one, draining
from fairlane.cli.output import Cell, View
from fairlane.cli.queues import counts_json, held_word, hold_fields, hold_json, limits_text
from fairlane.cli.session import Session, now_of
from fairlane.cli.terms import required_note
from fairlane.model.instants import Instant
from fairlane.model.layers import Kind
from fairlane.store.contract.request import PAGE_MOST


@click.group(cls=Group, lists=True)
def tenants() -> None:
    """Look at tenants and clear them: list, show, drain, purge, forget. Without one of these: list."""


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        message = f"{text[:40]!r} is no KEY=VALUE"
        raise ValueError(message)
    return key, value


@tenants.command("list", cls=Command)
@click.option(
    "--label", "labels", type=kinds.Kind("key=value", _label), multiple=True, help="With this label."
)
@click.option(
    "--limit", type=click.IntRange(1, PAGE_MOST), default=50, show_default=True, help="How many at most."
)
@click.option("--cursor", help="Go on where a listing stopped.")
@click.pass_obj
def list_tenants(
    session: Session, *, labels: tuple[tuple[str, str], ...], limit: int, cursor: str | None
) -> None:
    """List tenants by name with their unfinished and dead jobs."""
    try:
        page: Page[Tenant] = session.run(
            lambda app: app.tenants.alist(labels=dict(labels), limit=limit, cursor=cursor)
        )
    except ValueError as error:  # a label or a cursor that can be none
        raise click.UsageError(str(error)) from None
    session.output.table(page.items, _VIEW, empty="No tenant is known yet.")
    if page.cursor is not None:
        session.output.remark(f"There may be more: go on with --cursor {page.cursor}")


@tenants.command(cls=Command)
@click.argument("name", type=kinds.TENANT)
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show one tenant: its weight, its limits and jobs by queue, what was set above them, pauses."""

    async def read(app: Fairlane) -> tuple[Tenant, Instant]:
        return await app.tenants.aget(name), await now_of(app)

    tenant, now = session.run(read)
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
    session.output.record(fields, tenant_json(tenant))


def _counted(tenant: Tenant, queue: str) -> str:
    return ", ".join(f"{number} {state.value}" for state, number in tenant.counts[queue].items() if number)


@tenants.command(cls=Command)
@click.argument("name", type=kinds.TENANT)
@draining
@click.pass_obj
def drain(session: Session, /, name: str, **said: Any) -> None:
    """Pause or close a tenant, and wait until nothing of it runs.

    It stays paused or closed afterwards, also when the wait is given up (exit code 1) or interrupted.
    """
    drain_one(session, Kind.TENANT, name, **said)


@tenants.command(cls=Command)
@click.argument("name", type=kinds.TENANT)
@click.option("--queue", type=kinds.QUEUE, help="Only in this queue.")
@required_note
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def purge(session: Session, name: str, *, queue: str | None, note: str, yes: bool) -> None:
    """Cancel all waiting jobs of a tenant; what runs goes on."""
    where = "" if queue is None else f" in queue {queue}"
    session.confirm(f"Cancel all waiting jobs of tenant {name}{where}?", yes=yes)
    number = session.run(lambda app: app.tenants.apurge(name, queue=queue, reason=note, who=session.who))
    session.output.answer(
        f"{number} job(s) of tenant {name}{where} cancelled.", {"tenant": name, "cancelled": number}
    )


@tenants.command(cls=Command)
@click.argument("name", type=kinds.TENANT)
@required_note
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def forget(session: Session, name: str, *, note: str, yes: bool) -> None:
    """Erase payloads, results, errors and keys of a tenant, and cancel what waits. Counts stay."""
    session.confirm(f"Erase all that is stored of the jobs of tenant {name}, for good?", yes=yes)
    number = session.run(lambda app: app.tenants.aforget(name, reason=note, who=session.who))
    session.output.answer(f"{number} job(s) of tenant {name} erased.", {"tenant": name, "erased": number})


def _total(tenant: Tenant, state: State) -> int:
    return sum(counts[state] for counts in tenant.counts.values())


def tenant_json(tenant: Tenant) -> dict[str, Any]:
    """Give all of a tenant, for programs."""
    return {
        "name": tenant.name,
        "weight": tenant.weight,
        "labels": dict(tenant.labels),
        "limits": {queue: msgspec.to_builtins(limits) for queue, limits in tenant.limits.items()},
        "counts": {queue: counts_json(counts) for queue, counts in tenant.counts.items()},
        **hold_json(tenant.paused, tenant.closed, tenant.override),
    }


_VIEW: Final[View[Tenant]] = View(
    {
        "TENANT": lambda tenant: tenant.name,
        "WEIGHT": lambda tenant: f"{tenant.weight:g}",
        "DELAYED": lambda tenant: _total(tenant, State.DELAYED),
        "READY": lambda tenant: _total(tenant, State.READY),
        "RUNNING": lambda tenant: _total(tenant, State.RUNNING),
        "DEAD": lambda tenant: _total(tenant, State.DEAD),
        "HELD": lambda tenant: held_word(tenant.paused, tenant.closed),
    },
    tenant_json,
)
