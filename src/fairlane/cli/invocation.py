"""One invocation of the command: its global options, its output, its application and store."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fairlane.cli.exits import Exit
from fairlane.model.errors import ConfigError, StoreUnavailable

if TYPE_CHECKING:  # imported on first use: `fairlane version` needs none of it
    from fairlane import Fairlane
    from fairlane.cli.render.output import Output
    from fairlane.model.instants import Instant

T = TypeVar("T")

HOW_TO_NAME: Final = (
    "give --url (as in sqlite:///shop.db), set FAIRLANE_URL, or write `url` into [app] of fairlane.toml"
)
_NO_APPLICATION: Final = (
    "no application given; give MODULE:APP (as in shop.jobs:app), set FAIRLANE_APP, "
    "or write `import` into [app] of fairlane.toml"
)


class Invocation:
    """The global options of one command line, and what they lead to. Opens nothing until asked."""

    def __init__(self) -> None:
        self.application: str | None = None
        self.url: str | None = None
        self.config: str | None = None
        self.actor: str | None = None
        self.is_json = False
        self.has_color = "NO_COLOR" not in os.environ
        self.is_debug = False
        self.is_logging = False
        self.arguments: list[str] = []
        self.settings: dict[str, tuple[str, Any]] = {}

    @cached_property
    def output(self) -> Output:
        """The printer of answers."""
        from fairlane.cli.render.output import Output

        return Output(is_json=self.is_json, has_color=self.has_color)

    @cached_property
    def app(self) -> Fairlane:
        """The given application, else one without tasks on the given store."""
        from fairlane import Fairlane
        from fairlane.app.ambient import refuse_in_handler
        from fairlane.cli.application import import_tasks, load

        refuse_in_handler("the command line acts for all tenants")
        app = self._configured(Fairlane() if self.application is None else load(self.application))
        if self.application is not None:
            app.import_path = self.application
            import_tasks(app)
        _ = app.settings  # report configuration errors before anything else
        return app

    @cached_property
    def own_app(self) -> Fairlane:
        """The application with its tasks: the one given here, or in the configuration."""
        from fairlane import Fairlane

        if self.application is None:
            self.application = self._configured(Fairlane(), is_quiet=True).settings.import_
        if self.application is None:
            raise ConfigError(_NO_APPLICATION, key="app")
        return self.app

    def _configured(self, app: Fairlane, *, is_quiet: bool = False) -> Fairlane:
        """Pass the command line's options to an application before it reads its configuration (S55)."""
        options: dict[str, tuple[str, Any]] = {}
        if self.url is not None:
            options["--url"] = ("app.url", self.url)
        options |= self.settings
        file = None if self.config is None else Path(self.config)
        app.configuration.use(file=file, options=options, is_quiet=is_quiet)
        return app

    def run(self, work: Callable[[Fairlane], Coroutine[Any, Any, T]], *, makes_store: bool = False) -> T:
        """Run `work` with the store open. A missing store is an error, unless `makes_store`."""
        import asyncio

        from fairlane.app.acting import from_origin

        app = self.app
        settings = app.settings
        if not makes_store:
            refuse_missing(str(settings.url), is_default=settings.is_default_url)
        if settings.is_default_url and not self.is_logging and not app.client.has_reported_default_store:
            app.client.has_reported_default_store = True
            if not self.is_json:
                self.output.note(f"No store given; using {file_of(str(settings.url))}.")

        async def inside() -> T:
            async with app:
                return await work(app)

        with from_origin("cli", self.who):
            return asyncio.run(inside())

    def missing_file(self) -> Path | None:
        """Return the store's file if it does not exist yet; None if it does, or for a store on a server."""
        path = file_of(str(self.app.settings.url))
        return None if path is None or is_there(path) else path

    def log_to_stderr(self, form: str | None = None, *, has_tracebacks: bool = False) -> None:
        """Log to standard error, as text or as JSON: for long-running commands."""
        from fairlane.cli.logs import log_to_stderr

        is_json = self.is_json if form is None else form == "json"
        self.is_logging = True
        log_to_stderr(is_json=is_json, is_debug=self.is_debug, has_tracebacks=has_tracebacks)

    @cached_property
    def who(self) -> str:
        """Who changes something: as the command line or the environment says, else user and host."""
        from fairlane.app.acting import checked_actor, current_actor

        try:
            return current_actor() if self.actor is None else checked_actor("--as", self.actor)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before an action that cannot be undone. Without a terminal `--yes` is required."""
        if yes:
            return
        self.refuse_without_terminal("this cannot be undone")
        if not click.confirm(question, err=True):
            raise click.exceptions.Exit(Exit.REFUSED)

    def refuse_without_terminal(self, why: str) -> None:
        """Refuse what must be confirmed where nobody can be asked."""
        if not sys.stdin.isatty():
            message = f"{why}; confirm with --yes"
            raise click.UsageError(message)

    def set_setting(self, option: str, key: str, value: Any) -> None:
        """Let an option of the command line decide a key of the configuration, if it was given (S55)."""
        if value is not None:
            self.settings[option] = (key, value)

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Store the given options."""
        for name, value in options.items():
            setattr(self, name, value)


async def now_of(app: Fairlane) -> Instant:
    """Return the store's current time, which all its instants are compared with (S1)."""
    from fairlane.model.scope import Scope
    from fairlane.store.contract.request import Request

    return (await app.client.store.registry.status(Request(scope=Scope.all()))).now


def refuse_missing(url: str, *, is_default: bool = False) -> None:
    """Refuse a missing file: opening would create it and hide a typing error."""
    path = file_of(url)
    if path is None or is_there(path):
        return
    if is_default:
        message = (
            f"no store was given, and {path} does not exist; {HOW_TO_NAME}. `fairlane migrate` creates it"
        )
    else:
        message = f"there is no store at {path}; `fairlane migrate` creates one"
    raise StoreUnavailable(message, retry_safe=False)


def is_there(path: Path) -> bool:
    """Whether a file exists; `StoreUnavailable` if that cannot be checked."""
    try:
        return path.exists()
    except OSError as error:  # a name that is too long, a directory that cannot be entered
        raise StoreUnavailable(f"cannot access {path}: {error.strerror}", retry_safe=False) from None


def file_of(url: str) -> Path | None:
    """Return the file that a URL names; None for a store on a server."""
    if not url.startswith("sqlite:"):
        return None
    from fairlane.store.sqlite.location import Location

    return Location(url).path
