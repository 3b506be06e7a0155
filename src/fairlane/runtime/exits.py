"""Exit codes of a worker or a scheduler. The command line says what each means."""

from __future__ import annotations

from typing import Final

OK: Final = 0

STORE_GONE: Final = 4
"""The store was deleted or replaced while it was open."""

INTERNAL_ERROR: Final = 70
"""The worker's own code raised where no attempt could be settled as failed; a supervisor restarts it."""

EVENT_LOOP_BLOCKED: Final = 70
"""A handler blocked the worker's event loop (S31); a supervisor restarts it."""

REPLACE: Final = 75
"""The worker has drained and asks to be replaced, by an equal one and at once.

It has started `max_jobs` jobs, grown past `max_memory`, or found that it can no longer work well.
"""
