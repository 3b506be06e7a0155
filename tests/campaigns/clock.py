"""A store's clock that all processes of a campaign share, and that one of them sets."""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final

from fairlane.model.instants import SECOND, Instant

_AHEAD: Final = struct.Struct("<q")


class SharedClock:
    """The machine's clock, set forward and back by whoever holds its file."""

    def __init__(self, path: Path) -> None:
        """Share what the file says; the first one makes it."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.ftruncate(fd, _AHEAD.size)
        self._ahead = mmap.mmap(fd, _AHEAD.size)
        os.close(fd)

    def now(self) -> Instant:
        """Say what time it is for the store."""
        (ahead,) = _AHEAD.unpack(self._ahead[:])
        return time.time_ns() // 1_000 + int(ahead)

    def jump(self, seconds: float) -> None:
        """Set it, for everybody at once."""
        (ahead,) = _AHEAD.unpack(self._ahead[:])
        self._ahead[:] = _AHEAD.pack(int(ahead) + round(seconds * SECOND))
