"""What one run of the command knows: its options, where it writes, which application and store it means."""

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

if TYPE_CHECKING:  # imported where they are used: `fairlane version` needs none of it
    from fairlane import Fairlane
    from fairlane.cli.output import Output
    from fairlane.model.instants import Instant

T = TypeVar("T")

HOW_TO_NAME: Final = (
    "give --url (as in sqlite:///shop.db), set FAIRLANE_URL, or write `url` into [app] of fairlane.toml"
)
_NO_APPLICATION: Final = (
    "no application is named; give MODULE:APP (as in shop.jobs:app), set FAIRLANE_APP, "
    "or write `import` into [app] of fairlane.toml"
)


class Session:
    """The options of one command line, and what they lead to. Opens nothing before it is asked."""

    def __init__(self) -> None:
        self.application: str | None = None
        self.url: str | None = None
        self.config: str | None = None
        self.is_json = False
        self.has_color = "NO_COLOR" not in os.environ
        self.is_debug = False
        self.is_logging = False

    @cached_property
    def output(self) -> Output:
        """Where answers go."""
        from fairlane.cli.output import Output

        return Output(is_json=self.is_json, has_color=self.has_color)

    @cached_property
    def app(self) -> Fairlane:
        """The application: the one that was named, else a bare one on the store that was."""
        from fairlane import Fairlane
        from fairlane.app.ambient import refuse_in_handler
        from fairlane.cli.application import import_tasks, load

        refuse_in_handler("the command line acts for all tenants")
        app = self._told(Fairlane() if self.application is None else load(self.application))
        if self.application is not None:
            import_tasks(app)
        _ = app.settings  # so that what is wrong with the configuration is told before anything else
        return app

    @cached_property
    def own_app(self) -> Fairlane:
        """The application with its tasks: the one that was named here, or in the configuration."""
        from fairlane import Fairlane

        if self.application is None:
            self.application = self._told(Fairlane(), is_quiet=True).settings.import_
        if self.application is None:
            raise ConfigError(_NO_APPLICATION, key="app")
        return self.app

    def _told(self, app: Fairlane, *, is_quiet: bool = False) -> Fairlane:
        """Tell an application what the command line says, before it reads its configuration (S55)."""
        options = {} if self.url is None else {"--url": ("app.url", self.url)}
        file = None if self.config is None else Path(self.config)
        app.configuration.use(file=file, options=options, is_quiet=is_quiet)
        return app

    def run(self, work: Callable[[Fairlane], Coroutine[Any, Any, T]], *, makes_store: bool = False) -> T:
        """Run an answer's work with the store open. Unless told so, no store is made where there is none."""
        import asyncio

        app = self.app
        settings = app.settings
        if not makes_store:
            refuse_missing(str(settings.url), is_default=settings.is_default_url)
        if settings.is_default_url and not self.is_logging and not app.client.is_place_told:
            app.client.is_place_told = True
            if not self.is_json:
                self.output.remark(f"No store is named; using {file_of(str(settings.url))}.")

        async def inside() -> T:
            async with app:
                return await work(app)

        return asyncio.run(inside())

    def missing_file(self) -> Path | None:
        """Give the store's file if it is not there yet; None if it is, or if the store is no file."""
        path = file_of(str(self.app.settings.url))
        return None if path is None or is_there(path) else path

    def log_to_stderr(self, form: str | None = None, *, has_tracebacks: bool = False) -> None:
        """Let the log be seen, as text or as JSON: for commands that run on their own."""
        from fairlane.cli.logs import log_to_stderr

        is_json = self.is_json if form is None else form == "json"
        self.is_logging = True
        log_to_stderr(is_json=is_json, is_debug=self.is_debug, has_tracebacks=has_tracebacks)

    @cached_property
    def who(self) -> str:
        """Who gives the orders, for those who wonder about them."""
        from fairlane.app.acting import actor
        from fairlane.runtime.identity import host

        return f"{actor(None)}@{host()}"

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before something that cannot be undone; without a terminal it must be said in advance."""
        if yes:
            return
        if not sys.stdin.isatty():
            message = "this cannot be undone; say --yes"
            raise click.UsageError(message)
        if not click.confirm(question, err=True):
            raise click.exceptions.Exit(Exit.REFUSED)

    def keep(self, options: Mapping[str, Any]) -> None:
        """Take over the options that were given."""
        for name, value in options.items():
            setattr(self, name, value)


async def now_of(app: Fairlane) -> Instant:
    """Say what time it is for the store, which all its instants are to be compared with (S1)."""
    from fairlane.model.scope import Scope
    from fairlane.store.contract.request import Request

    return (await app.client.store.registry.pulse(Request(scope=Scope.all()))).now


def refuse_missing(url: str, *, is_default: bool = False) -> None:
    """Refuse a file that is not there: opening would make one, and nobody would find the typing error."""
    path = file_of(url)
    if path is None or is_there(path):
        return
    if is_default:
        message = (
            f"no store is named, and there is none at {path}; {HOW_TO_NAME}. `fairlane migrate` makes one"
        )
    else:
        message = f"there is no store at {path}; `fairlane migrate` makes one"
    raise StoreUnavailable(message, retry_safe=False)


def is_there(path: Path) -> bool:
    """Whether a file is there; `StoreUnavailable` if that cannot be known."""
    try:
        return path.exists()
    except OSError as error:  # a name that is too long, a folder that cannot be entered
        raise StoreUnavailable(f"{path} cannot be looked at: {error.strerror}", retry_safe=False) from None


def file_of(url: str) -> Path | None:
    """Give the file that a URL names; None for a store that is no file."""
    if not url.startswith("sqlite:"):
        return None
    from fairlane.store.sqlite.location import Location

    return Location(url).path
