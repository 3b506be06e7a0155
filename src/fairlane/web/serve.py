"""Run the web as a process: one server on one socket, until it is told to stop. The CLI calls this."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from logging import WARNING, getLogger
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlane.app.fairlane import Fairlane
from fairlane.app.web_settings import WebSettings
from fairlane.model.errors import ConfigError, StoreError
from fairlane.model.instants import SECOND, Micros
from fairlane.runtime.exits import OK
from fairlane.runtime.loops import repeat, start_in_background
from fairlane.runtime.signals import on_stop
from fairlane.supervisor.control import SupervisorConnection
from fairlane.supervisor.supervised import supervised
from fairlane.web.access.first_sign_in import first_sign_in
from fairlane.web.application import asgi

MOST_CONNECTIONS: Final = 1_000
"""Connections at once; more are answered 503. A browser has one for its stream and a few for pages."""

_STOP_WITHIN: Final = 3
"""Seconds that requests under way, and streams, have after a stop signal."""

_BACKLOG: Final = 128
_TAKEN: Final = frozenset({errno.EADDRINUSE, errno.EACCES})

log: Final = getLogger("fairlane.web")


class WebServer(uvicorn.Server):
    """The server, which leaves signals to its process and says when it listens."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none: its process knows when to stop."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        if self.started:
            await self._on_listening()


def run_web(app: Fairlane, *, supervisor: SupervisorConnection | None = None) -> int:
    """Serve the web until SIGTERM, SIGINT or the end of the supervisor; return the exit code of the process.

    `ConfigError` if nobody can listen at the address.
    """
    with listening(app.settings.web) as listener:
        return asyncio.run(_serve(app, listener, supervisor))


async def _serve(app: Fairlane, listener: socket.socket, supervisor: SupervisorConnection | None) -> int:
    web = asgi(app)
    url = url_of(app.settings.web, listener)
    address = str(listener.getsockname()[0])

    async def tell() -> Micros | None:
        try:
            told = await first_sign_in(app, url, address)
        except StoreError:  # `fairlane up` creates the store in the process beside this one
            return SECOND
        if told is not None:
            sys.stdout.write(f"\n{told}\n")
            sys.stdout.flush()
        return None

    async def say() -> None:
        facts = {"event": "web_serving", "url": url, "pid": os.getpid()}
        log.info("the web is served at %s", url, extra=facts)
        if supervisor is not None:
            supervisor.ready(_STOP_WITHIN * SECOND)
        start_in_background(repeat(tell))  # it ends with the loop

    getLogger("uvicorn.error").setLevel(WARNING)  # it would say in other words what is said here
    server = WebServer(
        uvicorn.Config(
            below_prefix(web, app.settings.web.prefix),
            lifespan="on",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # `behind_proxies` believes only those that were named
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=_STOP_WITHIN,
        ),
        say,
    )

    def stop() -> None:
        server.should_exit = True

    with on_stop(stop):
        async with supervised(supervisor, stop):
            await server.serve(sockets=[listener])
    await app.aclose()
    return OK


# ── where ─────────────────────────────────────────────────────────────────────


@contextmanager
def listening(settings: WebSettings) -> Generator[socket.socket]:
    """Listen at the address of `[web]`; `ConfigError` says why that cannot be."""
    host, port = settings.host, settings.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        is_taken = error.errno in _TAKEN
        key, allowed = ("port", "another port") if is_taken else ("host", "an address of this machine")
        message = f"nobody can listen at {host} port {port}: {error.strerror or error}."
        raise ConfigError(message, key=f"web.{key}", allowed=allowed) from None
    with listener:
        # Accepted connections inherit it; asyncio sets it only where the listener names its protocol. Without
        # it the second part of an answer waits for the browser to confirm the first: 40 ms for each.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def url_of(settings: WebSettings, listener: socket.socket) -> str:
    """Return the URL of the first page, as a browser on this machine may use it."""
    host: str
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (nothing is bound here)
    name = f"[{shown}]" if ":" in shown else shown
    return f"http://{name}:{port}{settings.prefix or ''}/"


def below_prefix(web: Starlette, prefix: str | None) -> ASGIApp:
    """Serve everything below a prefix; what is asked outside of it leads there."""
    if prefix is None:
        return web

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"].startswith(f"{prefix}/"):
            await web({**scope, "root_path": prefix}, receive, send)
        elif scope["type"] == "http":
            await _outside(scope["path"], prefix)(scope, receive, send)

    return serve


def _outside(path: str, prefix: str) -> Response:
    if path in {"/", prefix}:
        return RedirectResponse(f"{prefix}/", status_code=303)
    return PlainTextResponse("There is nothing here.\n", status_code=404)
