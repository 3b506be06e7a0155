"""How much memory this process takes, where the operating system says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")


def is_memory_known() -> bool:
    """Whether `resident_memory` works here: on Linux it does."""
    return _STATM.exists()


def resident_memory() -> int:
    """Return the bytes of memory that this process has in use, shared pages included.

    >>> not is_memory_known() or resident_memory() > 1_000_000
    True
    """
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
