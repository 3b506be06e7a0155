"""Commands that load when they are called, take the shared options anywhere, and end with our exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

import click

from fairlane.cli.exits import Exit, exit_of
from fairlane.cli.session import Session
from fairlane.model.errors import FairlaneError, InvalidJob

_WIDEST: Final = 600
_SHARED_HINT: Final = "The options of `fairlane` itself may be given here, too."


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    session = context.ensure_object(Session)
    name = option.name or ""
    if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
        session.keep({name: value})


def shared_options(*, hidden: bool) -> list[click.Parameter]:
    """Give the options that every command takes; below the root they are taken, but not listed again."""
    texts: tuple[tuple[Sequence[str], str, Mapping[str, Any]], ...] = (
        (("--app", "application"), "The application, where its tasks matter.", {"metavar": "MODULE:APP"}),
        (("--url",), "The store [env: FAIRLANE_URL; default: sqlite:///fairlane.db].", {"metavar": "URL"}),
        (("--config",), "The file fairlane.toml [env: FAIRLANE_CONFIG].", {"metavar": "FILE"}),
        (("--json", "is_json"), "Answer as JSON; lists one object a line.", {"is_flag": True}),
        (("--color/--no-color", "has_color"), "Colours on a terminal.", {"default": True}),
        (("--debug", "is_debug"), "Show where an error comes from.", {"is_flag": True}),
    )
    return [
        click.Option(list(names), help=text, expose_value=False, callback=_keep, hidden=hidden, **more)
        for names, text, more in texts
    ]


class Command(click.Command):
    """A command that takes the shared options, too."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings.setdefault("epilog", _SHARED_HINT)
        super().__init__(*args, **settings)
        self.params += shared_options(hidden=True)


class Group(click.Group):
    """A command with commands below it. One that lists does so when none of them is named."""

    command_class = Command

    def __init__(self, *args: Any, lists: bool = False, **settings: Any) -> None:
        settings["invoke_without_command"] = lists
        super().__init__(*args, **settings)
        self.params += shared_options(hidden=True)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named, or list."""
        answer = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            return ctx.invoke(self.commands["list"])
        return answer


class Root(click.Group):
    """The command itself: knows where its commands are, and turns every end into an exit code."""

    def __init__(self, *args: Any, places: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params += shared_options(hidden=False)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's shape)
        """Name the commands in the order of their table."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (as above)
        """Load a command's module when it is asked for."""
        place = self._places.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Run a command line and exit with the code that tells how it ended."""
        arguments = list(sys.argv[1:] if args is None else args)
        session = Session()
        try:
            code = self._run(arguments, session)
            sys.stdout.flush()
        except BrokenPipeError:
            _close_output()
            code = Exit.CLOSED
        sys.exit(code)

    def _run(self, arguments: list[str], session: Session) -> int:
        try:
            _refuse_broken(arguments)
            with self.make_context("fairlane", arguments, obj=session) as context:
                self.invoke(context)
        except click.exceptions.Exit as ended:
            return ended.exit_code
        except (click.Abort, KeyboardInterrupt, EOFError):
            return Exit.INTERRUPTED
        except click.ClickException as error:
            text = error.format_message()
            if len(text) > _WIDEST:
                error = click.UsageError(_bounded(text), getattr(error, "ctx", None))
            if session.is_json or "--json" in arguments:  # what comes before it may be what is wrong
                _tell_json(session, type(error).__name__, error.format_message(), error.exit_code)
            else:
                error.show()
            return error.exit_code
        except FairlaneError as error:
            if session.is_debug:
                raise
            return _tell(session, error)
        return Exit.OK


def _refuse_broken(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no text before they reach anything that stores or shows them."""
    for number, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            message = f"word {number} of the command line is no UTF-8"
            raise click.UsageError(message) from None


def _bounded(message: str) -> str:
    """Leave out the middle of a message that repeats a very long value."""
    return f"{message[:200]} … {message[-200:]}"


def _tell(session: Session, error: FairlaneError) -> Exit:
    code = exit_of(error)
    if session.is_json:
        problems = error.problems if isinstance(error, InvalidJob) else ()
        _tell_json(session, type(error).__name__, str(error), code, problems)
    else:
        session.output.remark(f"Error: {error}")
    return code


def _tell_json(session: Session, kind: str, message: str, code: int, problems: Sequence[Any] = ()) -> None:
    import msgspec

    told: dict[str, object] = {"error": kind, "message": message, "exit": int(code)}
    if problems:
        told["problems"] = [msgspec.to_builtins(problem) for problem in problems]
    session.output.remark(msgspec.json.encode(told).decode())


def _close_output() -> None:
    """Let the interpreter's last flush go nowhere: whoever read the output is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
