"""Keep the last lines that a handler logged, for the history of its attempt (S62). Stores nothing."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Mapping
from logging import Formatter, Logger, LoggerAdapter
from typing import Any, Final

from fairlane.model.failure import bounded

LINES_KEPT: Final = 200
BYTES_KEPT: Final = 16 * 1024
LINE_CHARS: Final = 4_000
"""How much of one line is kept: one alone always fits."""

_LINE: Final = Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")


class Tail:
    """The last lines of one attempt: at most so many, and at most so many bytes."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)

    def add(self, text: str) -> None:
        """Keep what was said; what is oldest goes."""
        self._lines.extend(bounded(line, LINE_CHARS) for line in text.splitlines())

    def text(self) -> str | None:
        r"""Give what is kept, oldest first; None if nothing was said.

        >>> tail = Tail()
        >>> tail.add("first"); tail.add("second")
        >>> tail.text()
        'first\nsecond'
        """
        kept: list[str] = []
        room = BYTES_KEPT
        for line in reversed(tuple(self._lines)):
            room -= len(line.encode()) + 1
            if room < 0:
                break
            kept.append(line)
        return "\n".join(reversed(kept)) or None


class AttemptLog(LoggerAdapter[Logger]):
    """A logger that says whose attempt it speaks for, and keeps its last lines, INFO and above."""

    def __init__(self, about: Mapping[str, Any], tail: Tail) -> None:
        super().__init__(logging.getLogger("fairlane.task"), about)
        self._tail = tail

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log, and keep the line whatever the application's logging does with it."""
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
