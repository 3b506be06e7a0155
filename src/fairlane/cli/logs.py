"""Show the log of a command that runs on its own: lines for people, objects for programs, no secrets (S6)."""

from __future__ import annotations

import logging
import sys
from typing import Final

from fairlane.cli.safe import lines
from fairlane.model.sensitive import redact_text
from fairlane.runtime.logs import JsonFormatter

_FORM: Final = "%(asctime)s %(levelname)s %(message)s"


class PlainFormatter(logging.Formatter):
    r"""Time, level and message; what looks secret is redacted, and nothing in it moves the cursor.

    >>> record = logging.LogRecord("fairlane", 30, "", 0, "password=%s \x1b[2J", ("hunter2",), None)
    >>> PlainFormatter("%(levelname)s %(message)s").format(record)
    'WARNING password=[redacted] \\x1b[2J'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Give the text, a traceback below it if there is one."""
        return "\n".join(lines(redact_text(super().format(record))))


def log_to_stderr(*, is_json: bool, is_debug: bool) -> None:
    """Let everything that is logged be seen, from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if is_json else PlainFormatter(_FORM))
    logging.basicConfig(level=logging.DEBUG if is_debug else logging.INFO, handlers=[handler])
