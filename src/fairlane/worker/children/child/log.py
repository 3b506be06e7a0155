"""Send the log records of a child to its worker, whose handlers write them. Formats no line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from logging import Handler, LogRecord
from typing import Any, Final

from fairlane.model.failure import bounded, text_of
from fairlane.worker.children.connection import ConnectionLost, WorkerConnection
from fairlane.worker.children.protocol import Logged

MESSAGE_CHARS: Final = 16_000

_STANDARD: Final = frozenset(LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "taskName"}


class ToWorker(Handler):
    """Sends records to the worker; what cannot be sent is dropped. `about` are fields of the running job."""

    def __init__(self, connection: WorkerConnection, about: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__()
        self._connection = connection
        self._about = about

    def emit(self, record: LogRecord) -> None:
        """Send one record."""
        given = {name: value for name, value in record.__dict__.items() if name not in _STANDARD}
        message = Logged(
            name=record.name,
            level=record.levelno,
            message=bounded(text_of(record, MESSAGE_CHARS, _message), MESSAGE_CHARS),
            created=record.created,
            path=bounded(record.pathname, 1_000),
            line=record.lineno,
            function=bounded(record.funcName or "", 200),
            error=self._error(record),
            extra={str(name)[:80]: _sendable(value) for name, value in {**self._about(), **given}.items()},
        )
        with suppress(ConnectionLost):
            self._connection.send(message)

    def _error(self, record: LogRecord) -> str | None:
        if not record.exc_info:
            return record.exc_text
        formatter = self.formatter or logging.Formatter()
        info = record.exc_info
        return text_of(info, MESSAGE_CHARS, lambda _: formatter.formatException(info))


def log_to_worker(
    connection: WorkerConnection, levels: Mapping[str, int], about: Callable[[], Mapping[str, Any]]
) -> None:
    """Let the root logger send to the worker, and to nobody else; take over the worker's levels."""
    root = logging.getLogger()
    for handler in list(root.handlers):  # the worker, which imported the same application, has them too
        root.removeHandler(handler)
    root.addHandler(ToWorker(connection, about))
    for name, level in levels.items():
        logging.getLogger(name or None).setLevel(level)


def _message(record: object) -> str:
    return record.getMessage() if isinstance(record, LogRecord) else ""


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return bounded(value, MESSAGE_CHARS)
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    return text_of(value, 2_000)
