"""`fairlane users`: who may sign in with a password, with which role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

import click
from msgspec import UNSET

from fairlane import Fairlane, User
from fairlane.app.access.checks import grants_of
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.access.options import USER, password_file, password_of, role, since
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.cli.shared_options import note
from fairlane.model.access import Role
from fairlane.model.instants import Instant

_name = click.argument("name", type=USER)
_tenant = click.option("--tenant", type=value_types.TENANT, help="Bind the user to this tenant.")


def _grants(_: click.Context, __: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    try:
        return grants_of(values)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_grant = click.option(
    "--grant",
    "grants",
    multiple=True,
    callback=_grants,
    metavar="ACTION",
    help="Also allow this action, as queues.pause; repeat it for more.",
)


@click.group(cls=Group, lists=True)
def users() -> None:
    """Manage who may sign in: list, add, set, remove. Default: list."""


@users.command("list", cls=Command)
@click.pass_obj
def list_users(invocation: Invocation) -> None:
    """List all users: role, tenant, and when each was last seen."""

    async def read(app: Fairlane) -> tuple[Sequence[User], Instant]:
        return await app.users.alist(), await now_of(app)

    found, now = invocation.run(read)
    empty = "There is no user yet; `fairlane users add NAME --role ROLE` adds one."
    invocation.output.table(found, _view(now), empty=empty)


@users.command(cls=Command)
@_name
@role
@_tenant
@_grant
@password_file
@note
@click.pass_obj
def add(
    invocation: Invocation,
    *,
    name: str,
    role: str,
    tenant: str | None,
    grants: tuple[str, ...],
    password_file: TextIO | None,
    note: str,
) -> None:
    """Add a user. You are asked for the password, unless a file has it."""
    password = password_of(password_file, name)
    user = invocation.run(
        lambda app: app.users.aadd(
            name, password=password, role=role, tenant=tenant, grants=grants, note=note
        )
    )
    invocation.output.answer(f"User {user.name} may sign in as {_what(user)}.", asdict(user))


@users.command("set", cls=Command)
@_name
@click.option("--role", type=click.Choice([one.value for one in Role]), help="Another role.")
@_tenant
@click.option("--all-tenants", is_flag=True, help="Bind the user to no tenant.")
@_grant
@click.option("--no-grants", is_flag=True, help="Take away all actions beside those of the role.")
@click.option("--password", "asks", is_flag=True, help="Ask for a new password; it ends all sessions.")
@password_file
@click.option("--disable/--enable", "disabled", default=None, help="Keep the user out, or let it in again.")
@note
@click.pass_obj
def set_user(
    invocation: Invocation,
    *,
    name: str,
    role: str | None,
    tenant: str | None,
    all_tenants: bool,
    grants: tuple[str, ...],
    no_grants: bool,
    asks: bool,
    password_file: TextIO | None,
    disabled: bool | None,
    note: str,
) -> None:
    """Change a user; what you leave out stays. It holds at the user's next request."""
    if (tenant and all_tenants) or (grants and no_grants):
        message = "give either --tenant or --all-tenants, and either --grant or --no-grants"
        raise click.UsageError(message)
    password = password_of(password_file, name) if asks or password_file is not None else UNSET
    changes = {
        "role": UNSET if role is None else role,
        "tenant": None if all_tenants else UNSET if tenant is None else tenant,
        "grants": grants if grants or no_grants else UNSET,
        "disabled": UNSET if disabled is None else disabled,
        "password": password,
    }
    given: dict[str, Any] = {field: value for field, value in changes.items() if value is not UNSET}
    if not given:
        raise click.UsageError("nothing to change was given; `fairlane users set --help` lists what can be")
    user = invocation.run(lambda app: app.users.aset(name, note=note, **given))
    told = "is disabled" if user.disabled else f"may sign in as {_what(user)}"
    invocation.output.answer(f"User {user.name} {told}.", asdict(user))


@users.command(cls=Command)
@_name
@note
@click.pass_obj
def remove(invocation: Invocation, *, name: str, note: str) -> None:
    """Remove a user; all its sessions end."""
    invocation.run(lambda app: app.users.aremove(name, note=note))
    invocation.output.answer(f"User {name} is gone, and its sessions have ended.", {"removed": name})


def _what(user: User) -> str:
    where = "for all tenants" if user.tenant is None else f"for tenant {user.tenant}"
    return f"{user.role.value} {where}"


def _view(now: Instant) -> TableView[User]:
    return TableView(
        {
            "USER": lambda user: user.name,
            "ROLE": lambda user: user.role.value,
            "TENANT": lambda user: user.tenant,
            "GRANTS": lambda user: ", ".join(user.grants),
            "STATE": lambda user: "disabled" if user.disabled else "active",
            "LAST SEEN": lambda user: since(user.seen_at, now),
            "ADDED BY": lambda user: user.created_by,
        },
        asdict,
    )
