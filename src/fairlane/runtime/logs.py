"""Format log records as JSON, one object a line, with secrets redacted (S6). Installs itself nowhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from logging import Formatter, LogRecord
from typing import Any, Final

from fairlane.model.payload.sensitive import redact, redact_text

_STANDARD_FIELDS: Final = frozenset(LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}
"""What every record has; anything else was given as `extra`."""

_FREE_TEXTS: Final = frozenset({"message", "error", "traceback", "stacks"})
"""Texts that may contain a secret: only the secret part is redacted."""


class JsonFormatter(Formatter):
    """One JSON object a line: time, level, logger, message, and the record's `extra` fields.

    The `traceback` of a failed attempt is long and left out unless `has_tracebacks`.

    >>> record = LogRecord("fairlane", 20, "", 0, "job %s", ("7",), None)
    >>> record.event, record.password = "job_settled", "hunter2"
    >>> line = json.loads(JsonFormatter().format(record))
    >>> line["message"], line["event"], "hunter2" in str(line)
    ('job 7', 'job_settled', False)
    """

    def __init__(self, *, has_tracebacks: bool = False) -> None:
        super().__init__()
        self._left_out = _STANDARD_FIELDS if has_tracebacks else _STANDARD_FIELDS | {"traceback"}

    def format(self, record: LogRecord) -> str:
        """Return the line; values that JSON does not know are written as text."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in record.__dict__.items() if name not in self._left_out}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        shown = redact(line) | {name: redact_text(str(line[name])) for name in _FREE_TEXTS & line.keys()}
        return json.dumps(shown, default=str, ensure_ascii=False)
