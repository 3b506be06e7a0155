"""`fairlane web`: serve the dashboard and the REST API until SIGTERM or Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fairlane.app.config.keys import LAST_PORT
from fairlane.cli.command import Command
from fairlane.cli.invocation import Invocation
from fairlane.cli.shared_options import log
from fairlane.model.errors import ConfigError

if TYPE_CHECKING:
    from fairlane import Fairlane
    from fairlane.supervisor.control import SupervisorConnection

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGES: Final = ("starlette", "uvicorn", "jinja2", "sse_starlette", "argon2", "itsdangerous", "multipart")


def address_options(command: F) -> F:
    """Add --host and --port."""
    port = click.option(
        "--port",
        type=click.IntRange(0, LAST_PORT),
        metavar="N",
        help="The web's port; 0 takes a free one. Default 8080.",
    )(command)
    return click.option("--host", metavar="ADDRESS", help="Where the web listens. Default 127.0.0.1.")(port)


def missing_packages() -> list[str]:
    """Return the packages of the extra `web` that are not installed."""
    return [name for name in _PACKAGES if find_spec(name) is None]


def serve_web(app: Fairlane, supervisor: SupervisorConnection | None = None) -> int:
    """Serve the web; return the exit code of the process. `ConfigError` if packages are missing."""
    missing = missing_packages()
    if missing:
        message = f"it needs {', '.join(missing)}; install what is missing with: pip install 'fairlane[web]'"
        raise ConfigError(message, key="web")
    from fairlane.web.serve import run_web

    return run_web(app, supervisor=supervisor)


@click.command(cls=Command)
@click.argument("named", metavar="[MODULE:APP]", required=False)
@address_options
@log
@click.pass_obj
def web(
    invocation: Invocation, *, named: str | None, host: str | None, port: int | None, log_form: str | None
) -> None:
    """Serve the dashboard and the REST API until SIGTERM or Ctrl-C.

    Without MODULE:APP it shows the store of --url or of the configuration; an application adds what only its
    code knows, as the types of arguments.
    """
    if named is not None:
        invocation.application = named
    invocation.set_setting("--host", "web.host", host)
    invocation.set_setting("--port", "web.port", port)
    invocation.log_to_stderr(log_form)
    raise click.exceptions.Exit(serve_web(invocation.app))
