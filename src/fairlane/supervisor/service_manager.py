"""Report the state of the service to systemd (sd_notify), if it asks for it. Knows no worker."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping
from contextlib import suppress

from fairlane.model.instants import Micros


class ServiceManager:
    """Sends datagrams to $NOTIFY_SOCKET; without it, does nothing."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        """Take the variables of systemd out of the environment: they are not for the worker processes."""
        address = environ.pop("NOTIFY_SOCKET", "")
        watchdog, for_pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._status = ""
        is_ours = bool(address) and for_pid in {"", str(os.getpid())}
        self.watchdog: Micros | None = int(watchdog) if watchdog.isdigit() and is_ours else None

    def ready(self) -> None:
        """Report that the service works, for the first time or again."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Report that a rolling restart has begun; `ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Report that the service ends."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """Show what the service does, if that has changed."""
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def still_works(self) -> None:
        """Reset the watchdog."""
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)
            sender.sendto("\n".join(lines).encode(), self._address)
