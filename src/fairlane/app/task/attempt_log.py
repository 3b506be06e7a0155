"""Collect the last lines that a handler logs, for the record of its attempt (S62). Stores nothing."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Mapping
from logging import Formatter, Logger, LoggerAdapter
from typing import Any, Final

from fairlane.model.failure import bounded

MAX_LINES: Final = 200
MAX_BYTES: Final = 16 * 1024
MAX_LINE_CHARS: Final = 4_000
"""Longer lines are cut, so that one line always fits into the bytes."""

_LINE: Final = Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")


class LogTail:
    """The last log lines of one attempt, bounded in lines and in bytes."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)

    def add(self, text: str) -> None:
        """Append text; the oldest lines drop out."""
        self._lines.extend(bounded(line, MAX_LINE_CHARS) for line in text.splitlines())

    def text(self) -> str | None:
        r"""Return the lines, oldest first; None if there are none.

        >>> tail = LogTail()
        >>> tail.add("first"); tail.add("second")
        >>> tail.text()
        'first\nsecond'
        """
        newest: list[str] = []
        bytes_left = MAX_BYTES
        for line in reversed(tuple(self._lines)):
            bytes_left -= len(line.encode()) + 1
            if bytes_left < 0:
                break
            newest.append(line)
        return "\n".join(reversed(newest)) or None


class AttemptLog(LoggerAdapter[Logger]):
    """A logger that adds the attempt to every record, and collects its last lines at INFO and above."""

    def __init__(self, about: Mapping[str, Any], tail: LogTail) -> None:
        super().__init__(logging.getLogger("fairlane.task"), about)
        self._tail = tail

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log, and collect the line whatever the application's logging configuration does with it."""
        if level >= logging.INFO:
            self._tail.add(_LINE.format(self._record(level, msg, args, kwargs.get("exc_info"))))
        kwargs.setdefault("stacklevel", 1)
        kwargs["stacklevel"] += 1
        super().log(level, msg, *args, **kwargs)

    def _record(self, level: int, msg: object, args: tuple[object, ...], exc_info: Any) -> logging.LogRecord:
        if isinstance(exc_info, BaseException):
            exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
        elif exc_info:
            exc_info = sys.exc_info()
        return logging.LogRecord(self.logger.name, level, "", 0, msg, args, exc_info or None)
