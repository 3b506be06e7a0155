"""The command classes: loaded on first use, with global options everywhere, errors turned into exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

import click

from fairlane.cli.exits import Exit, exit_of
from fairlane.cli.invocation import Invocation
from fairlane.model.errors import FairlaneError, InvalidJob

_WIDEST: Final = 600
_SHARED_HINT: Final = "The global options of `fairlane` also work here."


def _store_option(context: click.Context, option: click.Parameter, value: Any) -> None:
    invocation = context.ensure_object(Invocation)
    name = option.name or ""
    if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
        invocation.set_options({name: value})


def shared_options(*, hidden: bool) -> list[click.Parameter]:
    """Return the options that every command takes. Subcommands accept them but do not list them again."""
    texts: tuple[tuple[Sequence[str], str, Mapping[str, Any]], ...] = (
        (
            ("--app", "application"),
            "The application, for commands that need its tasks.",
            {"metavar": "MODULE:APP"},
        ),
        (
            ("--url",),
            "The store's URL [env: FAIRLANE_URL; default: sqlite:///fairlane.db].",
            {"metavar": "URL"},
        ),
        (
            ("--config",),
            "The configuration file [env: FAIRLANE_CONFIG; default: fairlane.toml].",
            {"metavar": "FILE"},
        ),
        (
            ("--as", "actor"),
            "Who makes a change, for the audit [env: FAIRLANE_ACTOR; default: user@host].",
            {"metavar": "NAME"},
        ),
        (("--json", "is_json"), "Print JSON; a list is printed as one object per line.", {"is_flag": True}),
        (("--color/--no-color", "has_color"), "Use colours on a terminal.", {"default": True}),
        (("--debug", "is_debug"), "Show the traceback of an error.", {"is_flag": True}),
    )
    return [
        click.Option(
            list(names), help=text, expose_value=False, callback=_store_option, hidden=hidden, **more
        )
        for names, text, more in texts
    ]


class Command(click.Command):
    """A command that also takes the global options."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings.setdefault("epilog", _SHARED_HINT)
        super().__init__(*args, **settings)
        self.params += shared_options(hidden=True)


class Group(click.Group):
    """A command with subcommands. With `lists` it runs `list` when no subcommand is given.

    With `runs_alone` it does what it has to do itself then.
    """

    command_class = Command

    def __init__(self, *args: Any, lists: bool = False, runs_alone: bool = False, **settings: Any) -> None:
        settings["invoke_without_command"] = lists or runs_alone
        super().__init__(*args, **settings)
        self.params += shared_options(hidden=True)
        self._lists = lists

    def invoke(self, ctx: click.Context) -> Any:
        """Run the given subcommand, or `list`."""
        answer = super().invoke(ctx)
        if ctx.invoked_subcommand is None and self._lists:
            return ctx.invoke(self.commands["list"])
        return answer


class Root(click.Group):
    """The `fairlane` command: imports a command when called, and turns every error into an exit code."""

    def __init__(self, *args: Any, commands: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params += shared_options(hidden=False)
        self._commands = commands

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's shape)
        """Return the command names in the order of the table."""
        return list(self._commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (as above)
        """Import a command's module when the command is needed."""
        target = self._commands.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Run a command line, then exit with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        invocation = Invocation()
        invocation.arguments = list(arguments)  # click consumes those that it is given
        try:
            code = self._run(arguments, invocation)
            sys.stdout.flush()
        except BrokenPipeError:
            _close_output()
            code = Exit.CLOSED
        sys.exit(code)

    def _run(self, arguments: list[str], invocation: Invocation) -> int:
        try:
            _refuse_broken(arguments)
            with self.make_context("fairlane", arguments, obj=invocation) as context:
                self.invoke(context)
        except click.exceptions.Exit as ended:
            return ended.exit_code
        except (click.Abort, KeyboardInterrupt, EOFError):
            return Exit.INTERRUPTED
        except click.ClickException as error:
            text = error.format_message()
            if len(text) > _WIDEST:
                error = click.UsageError(_bounded(text), getattr(error, "ctx", None))
            # Parsing may have failed before it reached --json.
            if invocation.is_json or "--json" in arguments:
                _report_json(invocation, type(error).__name__, error.format_message(), error.exit_code)
            else:
                error.show()
            return error.exit_code
        except FairlaneError as error:
            if invocation.is_debug:
                raise
            return _report(invocation, error)
        return Exit.OK


def _refuse_broken(arguments: Sequence[str]) -> None:
    """Refuse arguments that are not valid UTF-8 before anything stores or prints them."""
    for number, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            message = f"argument {number} is not valid UTF-8"
            raise click.UsageError(message) from None


def _bounded(message: str) -> str:
    """Cut the middle out of a message that quotes a very long value."""
    return f"{message[:200]} … {message[-200:]}"


def _report(invocation: Invocation, error: FairlaneError) -> Exit:
    code = exit_of(error)
    if invocation.is_json:
        problems = error.problems if isinstance(error, InvalidJob) else ()
        _report_json(invocation, type(error).__name__, str(error), code, problems)
    else:
        invocation.output.note(f"Error: {error}")
    return code


def _report_json(
    invocation: Invocation, kind: str, message: str, code: int, problems: Sequence[Any] = ()
) -> None:
    import msgspec

    answer: dict[str, object] = {"error": kind, "message": message, "exit": int(code)}
    if problems:
        answer["problems"] = [msgspec.to_builtins(problem) for problem in problems]
    invocation.output.note(msgspec.json.encode(answer).decode())


def _close_output() -> None:
    """Send the interpreter's final flush to /dev/null: the reader of the pipe is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
