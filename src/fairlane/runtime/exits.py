"""How a worker or a scheduler ends, as an exit code. The command line says what each means."""

from __future__ import annotations

from typing import Final

OK: Final = 0

STORE_GONE: Final = 4
"""The store was deleted or replaced while it was open."""

BROKEN_DOWN: Final = 70
"""A worker's own code raised where no attempt could be settled by it; a supervisor replaces it."""

STOOD_STILL: Final = 70
"""A worker's event loop stood still (S31); a supervisor replaces it."""
