"""Log what must not be lost though something is stuck, perhaps the log itself. Knows not what it says."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

LOG_TIMEOUT: Final = 2.0
"""Seconds after which what could not be logged is written to standard error."""


def log_or_print(log: Callable[[], None], text: str) -> None:
    """Log; if that is blocked by whatever is stuck, write the text to standard error."""
    logging = threading.Thread(target=log, daemon=True)
    logging.start()
    logging.join(LOG_TIMEOUT)
    if logging.is_alive():
        with suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), text.encode(errors="replace"))
