"""Show the log of a command that runs on its own: lines for people, objects for programs, no secrets (S6)."""

from __future__ import annotations

import logging
import sys
from copy import copy
from typing import Final

from fairlane.cli.safe import lines
from fairlane.model.sensitive import redact_text
from fairlane.runtime.logs import JsonFormatter

_ABOUT: Final = ("tenant", "job", "attempt", "correlation")
"""What a line about an attempt is found by."""

_FORM: Final = "%(asctime)s %(levelname)s %(about)s%(message)s"


class PlainFormatter(logging.Formatter):
    r"""Time, level, whose attempt it is about, message; nothing secret, nothing that moves the cursor.

    >>> record = logging.LogRecord("fairlane", 30, "", 0, "password=%s \x1b[2J", ("hunter2",), None)
    >>> record.tenant, record.job, record.attempt = "acme", "7", 2
    >>> PlainFormatter("%(levelname)s %(about)s%(message)s").format(record)
    'WARNING tenant=acme job=7 attempt=2 password=[redacted] \\x1b[2J'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Give the text, a traceback below it if there is one."""
        about = {name: getattr(record, name) for name in _ABOUT if hasattr(record, name)}
        if about.get("correlation") == about.get("job"):
            about.pop("correlation", None)  # it was given none, and has the job's id for one
        shown = copy(record)  # others may have to show it, too
        shown.about = "".join(f"{name}={value} " for name, value in about.items())
        return "\n".join(lines(redact_text(super().format(shown))))


def log_to_stderr(*, is_json: bool, is_debug: bool) -> None:
    """Let everything that is logged be seen, from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if is_json else PlainFormatter(_FORM))
    logging.basicConfig(level=logging.DEBUG if is_debug else logging.INFO, handlers=[handler])
