"""What the commands about access share: roles, tenants, and passwords that are never arguments."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Final, TextIO

import click

from fairlane.app.access.checks import token_name, user_name
from fairlane.app.access.passwords import checked_password
from fairlane.cli.value_types import ValueType
from fairlane.model.access import Role
from fairlane.model.durations import ago
from fairlane.model.instants import Instant, to_instant

NEVER: Final = "never"

role: Final = click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    required=True,
    help="What it may do; each role may do all that those before it may.",
)
password_file: Final = click.option(
    "--password-file",
    type=click.File("r", encoding="utf-8"),
    metavar="FILE",
    help="Read the password from the first line of this file; - is standard input. Without it you are asked.",
)


USER: Final = ValueType("name", user_name)
TOKEN: Final = ValueType("name", token_name)


def password_of(file: TextIO | None, name: str) -> str:
    """Return the password from a file, or ask for it twice on a terminal; it is never an argument."""
    if file is not None:
        text = file.readline().rstrip("\r\n")
    elif sys.stdin.isatty():
        text = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        message = "there is no terminal to ask for the password; give --password-file FILE, or - to read it"
        raise click.UsageError(message)
    try:
        return checked_password(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def since(at: datetime | None, now: Instant) -> str:
    """Return how long ago something was, for people."""
    return NEVER if at is None else ago(to_instant(at), now)
