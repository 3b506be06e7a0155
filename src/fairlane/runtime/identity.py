"""Name this process uniquely among all that share a store: host, pid, start time and a random part."""

from __future__ import annotations

import os
import secrets
import socket
import time
from typing import Final

_HOST_CHARS: Final = 63


def host() -> str:
    """Return this machine's name."""
    return socket.gethostname()[:_HOST_CHARS] or "localhost"


def new_process_name(role: str) -> str:
    """Return a name that no other process has or will have.

    >>> new_process_name("worker").split("-")[0], new_process_name("worker") == new_process_name("worker")
    ('worker', False)
    """
    started = int(time.time())
    return f"{role}-{host()}-{os.getpid()}-{started:x}-{secrets.randbits(24):06x}"
