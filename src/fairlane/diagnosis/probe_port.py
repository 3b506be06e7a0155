"""Answer probes on a port of a process that serves no web: a worker, or a scheduler (S92)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from fairlane.app.fairlane import Fairlane
from fairlane.diagnosis.health import HealthWatch
from fairlane.diagnosis.probes import Probes
from fairlane.model.errors import ConfigError
from fairlane.runtime.probe_server import ProbeServer, probe_listener


@asynccontextmanager
async def probe_port(app: Fairlane, why_not_ready: Callable[[], str] = lambda: "") -> AsyncGenerator[None]:
    """Answer probes during a block, if `worker.health_port` is set; `ConfigError` if nobody can listen there.

    In the portal's loop, which renews the leases: a handler that blocks the worker's loop fails no probe.
    """
    worker, portal = app.settings.worker, app.client.portal
    if worker.health_port is None:
        yield
        return
    probes = Probes(HealthWatch(lambda: app.client.store, app.client.clock), why_not_ready)
    server = await portal.call(ProbeServer(probes).serve(_listener(worker.health_host, worker.health_port)))
    try:
        yield
    finally:
        await portal.call(_close(server))


async def _close(server: asyncio.Server) -> None:
    server.close()


def _listener(host: str, port: int) -> socket.socket:
    try:
        return probe_listener(host, port)
    except OSError as error:
        message = f"nobody can listen at {host} port {port}: {error.strerror or error}."
        raise ConfigError(message, key="worker.health_port", allowed="a free port of this machine") from None
