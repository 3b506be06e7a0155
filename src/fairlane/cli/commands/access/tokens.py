"""`fairlane tokens`: bearer tokens with which programs use the REST API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from fairlane import Fairlane, Token
from fairlane.cli import value_types
from fairlane.cli.command import Command, Group
from fairlane.cli.commands.access.options import NEVER, TOKEN, role, since
from fairlane.cli.invocation import Invocation, now_of
from fairlane.cli.render.output import TableView
from fairlane.cli.shared_options import note
from fairlane.model.instants import Instant, iso


@click.group(cls=Group, lists=True)
def tokens() -> None:
    """Manage the tokens of programs: list, create, revoke. Default: list."""


@tokens.command("list", cls=Command)
@click.pass_obj
def list_tokens(invocation: Invocation) -> None:
    """List the tokens that may be used; no secret is shown again."""

    async def read(app: Fairlane) -> tuple[Sequence[Token], Instant]:
        return await app.tokens.alist(), await now_of(app)

    found, now = invocation.run(read)
    empty = "There is no token yet; `fairlane tokens create NAME --role ROLE` makes one."
    invocation.output.table(found, _view(now), empty=empty)


@tokens.command(cls=Command)
@click.argument("name", type=TOKEN)
@role
@click.option("--tenant", type=value_types.TENANT, help="Bind the token to this tenant.")
@click.option("--for", "valid_for", type=value_types.DURATION, help="How long it is valid (90d).")
@note
@click.pass_obj
def create(
    invocation: Invocation, *, name: str, role: str, tenant: str | None, valid_for: float | None, note: str
) -> None:
    """Make a token and print its secret, which nobody can show again. NAME says what it is for."""
    made = invocation.run(
        lambda app: app.tokens.acreate(name, role=role, tenant=tenant, valid_for=valid_for, note=note)
    )
    if invocation.is_json:
        invocation.output.record({}, {**asdict(made.token), "secret": made.secret})
        return
    invocation.output.line(made.secret)
    ends = "until it is revoked" if made.token.expires_at is None else f"until {iso(made.token.expires_at)}"
    invocation.output.note(f"Token {made.token.id} is valid {ends}. Keep the secret: it is not shown again.")


@tokens.command(cls=Command)
@click.argument("id", metavar="ID")
@note
@click.pass_obj
def revoke(invocation: Invocation, *, id: str, note: str) -> None:
    """Revoke a token, at once and for good."""
    invocation.run(lambda app: app.tokens.arevoke(id, note=note))
    invocation.output.answer(f"Token {id} is revoked.", {"revoked": id})


def _view(now: Instant) -> TableView[Token]:
    return TableView(
        {
            "TOKEN": lambda token: token.id,
            "NAME": lambda token: token.name,
            "ROLE": lambda token: token.role.value,
            "TENANT": lambda token: token.tenant,
            "EXPIRES": lambda token: iso(token.expires_at) or NEVER,
            "LAST USED": lambda token: since(token.seen_at, now),
            "CREATED BY": lambda token: token.created_by,
        },
        asdict,
    )
