"""What systemd hears over its socket, by a real one of ours."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from fairlane.supervisor.service_manager import ServiceManager
from tests.supervisor.conftest import PATIENCE, Shop


class Systemd:
    """The receiving end of sd_notify."""

    def __init__(self, address: str) -> None:
        """Listen at a path, or in the abstract namespace."""
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.settimeout(PATIENCE)
        self.heard: list[str] = []

    def until(self, word: str) -> None:
        """Wait for a message that begins so."""
        while not any(line.startswith(word) for line in self.heard):
            self.heard += self._socket.recv(4096).decode().splitlines()

    def until_silent(self, word: str, seconds: float) -> None:
        """Wait until no message that begins so has come for this long."""
        self._socket.settimeout(seconds)
        try:
            while True:
                self.forget()
                self.until(word)
        except TimeoutError:
            self._socket.settimeout(PATIENCE)

    def forget(self) -> None:
        """Forget what was heard."""
        self.heard.clear()

    def close(self) -> None:
        """Listen no longer."""
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    """Both kinds of address that systemd uses."""
    made = Systemd(str(tmp_path / "s") if request.param == "path" else f"@fairlane-{uuid4().hex}")
    yield made
    made.close()


def test_systemd_hears_of_readiness_reload_watchdog_and_stop(shop: Shop, systemd: Systemd) -> None:
    """READY only when every process serves; RELOADING and READY around a rolling restart."""
    environ = {"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "3000000"}
    command = shop.start("--processes", "2", **environ)
    systemd.until("STATUS=2 of 2 processes serve")
    assert systemd.heard.index("READY=1") > systemd.heard.index("STATUS=1 of 2 processes serve")
    systemd.until("WATCHDOG=1")
    systemd.forget()
    command.signal(signal.SIGHUP)
    systemd.until("RELOADING=1")
    systemd.until("MONOTONIC_USEC=")
    systemd.until("READY=1")
    command.until("rolling_restart_done")
    command.signal(signal.SIGTERM)
    systemd.until("STOPPING=1")
    assert command.end() == 0


def test_the_watchdog_is_not_reset_while_a_process_is_silent(shop: Shop, systemd: Systemd) -> None:
    """A process that is stopped reports nothing; when it goes on, the watchdog is reset again."""
    command = shop.start(NOTIFY_SOCKET=systemd.address, WATCHDOG_USEC="1500000")
    (pid,) = command.serving(1)
    systemd.until("WATCHDOG=1")
    os.kill(pid, signal.SIGSTOP)
    try:
        systemd.until_silent("WATCHDOG=1", 3)  # twice the watchdog
    finally:
        os.kill(pid, signal.SIGCONT)
    systemd.until("WATCHDOG=1")


def test_worker_processes_do_not_see_the_socket(tmp_path: Path) -> None:
    """A watchdog of another process is not ours either."""
    environ = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "5", "WATCHDOG_PID": "1", "HOME": str(tmp_path)}
    assert ServiceManager(environ).watchdog is None
    assert environ == {"HOME": str(tmp_path)}


def test_without_the_socket_nothing_is_sent() -> None:
    """And nothing raises, nor if nobody listens."""
    for environ in ({}, {"NOTIFY_SOCKET": "/nowhere/at/all"}):
        manager = ServiceManager(environ)
        manager.ready()
        manager.status("works")
