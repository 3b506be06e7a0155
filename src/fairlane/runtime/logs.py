"""Write log records as JSON, one object a line, with nothing secret in it (S6). Installs itself nowhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from logging import Formatter, LogRecord
from typing import Any, Final

from fairlane.model.sensitive import redact

_USUAL: Final = frozenset(LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime", "taskName"}
"""What every record has; the rest was given as `extra`."""


class JsonFormatter(Formatter):
    """One JSON object a line: time, level, logger, message, and whatever the record carries besides.

    >>> record = LogRecord("fairlane", 20, "", 0, "job %s", ("7",), None)
    >>> record.event, record.password = "job_settled", "hunter2"
    >>> line = json.loads(JsonFormatter().format(record))
    >>> line["message"], line["event"], "hunter2" in str(line)
    ('job 7', 'job_settled', False)
    """

    def format(self, record: LogRecord) -> str:
        """Give the line; what JSON does not know is written as text."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in record.__dict__.items() if name not in _USUAL}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(redact(line), default=str, ensure_ascii=False)
