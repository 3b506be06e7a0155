"""Write the reference page of the command line from the commands themselves. Knows click, not the commands.

`make commands` writes docs/reference/command-line.md with it; a test compares the two.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from fairlane.cli.exits import MEANING
from fairlane.cli.main import cli

HEAD = """\
# Command line

Generated from the commands in `src/fairlane/cli/` by `make commands`; do not edit by hand.

`fairlane` asks and changes what is in a store. Most commands need only to know where it is: `--url`, or the
variable `FAIRLANE_URL`. Those that need the application's tasks take `--app MODULE:APP`, as in
`shop.jobs:app`; modules are looked for in the current folder first. `python -m fairlane` is the same command.

On a terminal, lists are tables (if [rich](https://rich.readthedocs.io) is installed). In a pipe they are
plain text, and `--json` gives one object a line; errors are then objects, too. Errors, and remarks that are
not part of an answer, are always on standard error. Times in JSON are UTC; on the screen they are as far away
as the store's clock says.

What looks secret is shown as `[redacted]`; `jobs show --reveal` shows it in clear. Control characters in
stored text are shown as codes: `\\x1b`.
"""


def commands(
    group: click.Group = cli, path: tuple[str, ...] = ("fairlane",)
) -> Iterator[tuple[str, click.Command]]:
    """Return every command with its full name, in the order of the help."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name  # noqa: S101 (the group has just named it)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def options(command: click.Command) -> Iterator[str]:
    """Return a table of a command's own options, or nothing."""
    rows = [
        f"| `{_names(one)}` | {one.help or ''}{_default(one)} |"
        for one in command.params
        if isinstance(one, click.Option) and not one.hidden
    ]
    if rows:
        yield from ["| option | |", "|---|---|", *rows, ""]


def _names(option: click.Option) -> str:
    names = ", ".join(option.opts) + ("/" + ", ".join(option.secondary_opts) if option.secondary_opts else "")
    return (
        names if option.is_flag else f"{names} {option.make_metavar(click.Context(cli))}".replace("|", "\\|")
    )


def _default(option: click.Option) -> str:
    return f" Default: {option.default}." if option.show_default else ""


def section(name: str, command: click.Command) -> Iterator[str]:
    """Describe one command."""
    context = click.Context(command, info_name=name, **cli.context_settings)
    yield f"## {name}"
    yield ""
    yield from ["```console", " ".join([name, *command.collect_usage_pieces(context)]), "```", ""]
    yield inspect.cleandoc(command.help or "")
    yield ""
    yield from options(command)


def exits() -> Iterator[str]:
    """Return the table of exit codes."""
    yield "## Exit codes"
    yield ""
    yield from ["| code | |", "|---|---|"]
    yield from (f"| {int(code)} | {text} |" for code, text in MEANING.items())
    yield ""


def page() -> str:
    """Return the whole page."""
    lines = [
        HEAD,
        "## Options of every command",
        "",
        "They may stand before or after the command's name.",
        "",
    ]
    lines += [*options(cli), *exits()]
    for name, command in commands():
        lines += section(name, command)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
