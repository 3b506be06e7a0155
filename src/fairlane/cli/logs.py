"""Format the log of a long-running command: lines for people, JSON for programs, never secrets (S6)."""

from __future__ import annotations

import logging
import sys
from copy import copy
from typing import Final

from fairlane.cli.render.escaping import lines, one_line
from fairlane.model.payload.sensitive import redact_text
from fairlane.runtime.logs import JsonFormatter

_ABOUT: Final = ("tenant", "job", "attempt", "correlation")
"""The fields that identify the attempt that a line is about."""

_FORM: Final = "%(asctime)s %(levelname)s %(about)s%(message)s"


class PlainFormatter(logging.Formatter):
    r"""Time, level, the attempt it is about, message; without secrets or terminal control characters.

    One record is one line and says each thing once. Tracebacks follow below it: logged ones, and with
    `has_tracebacks` also those of failed attempts.

    >>> record = logging.LogRecord("fairlane", 30, "", 0, "password=%s \x1b[2J", ("hunter2",), None)
    >>> record.tenant, record.job, record.attempt = "acme", "7", 2
    >>> PlainFormatter("%(levelname)s %(about)s%(message)s").format(record)
    'WARNING tenant=acme job=7 attempt=2 password=[redacted] \\x1b[2J'
    """

    def __init__(self, form: str = _FORM, *, has_tracebacks: bool = False) -> None:
        super().__init__(form)
        self._has_tracebacks = has_tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by a traceback if there is one."""
        message = record.getMessage()
        about = {name: getattr(record, name) for name in _ABOUT if hasattr(record, name)}
        if about.get("correlation") == about.get("job"):
            about.pop("correlation", None)  # the default correlation id is the job's id
        if str(about.get("job")) in message:
            about.pop("job")  # the worker's own messages already name job and attempt
            about.pop("attempt", None)
        shown = copy(record)  # other handlers get the same record
        shown.about = _one("".join(f"{name}={value} " for name, value in about.items()))
        shown.msg, shown.args = _one(message), ()
        trace = getattr(record, "traceback", None) if self._has_tracebacks else None
        text = super().format(shown) + ("" if trace is None else f"\n{str(trace).rstrip()}")
        return "\n".join(lines(redact_text(text)))


def _one(text: str) -> str:
    return one_line(text.replace("\t", "    "))


def log_to_stderr(*, is_json: bool, is_debug: bool, has_tracebacks: bool = False) -> None:
    """Log everything to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    form = JsonFormatter if is_json else PlainFormatter
    handler.setFormatter(form(has_tracebacks=has_tracebacks))
    logging.basicConfig(level=logging.DEBUG if is_debug else logging.INFO, handlers=[handler])
