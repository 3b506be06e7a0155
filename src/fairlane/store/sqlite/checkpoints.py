"""Keep the write-ahead log short. Knows nothing of what is in it.

By default SQLite copies the log back into the file inside a commit, while a caller waits, and restarts the
log only if no reader uses it at that moment: under readers that come and go it grows for ever. Here the
checkpoint runs after the answers were sent. A long log waits briefly for readers; an idle one is truncated.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import apsw

from fairlane.store.sqlite.connection import busy_timeout

LOG_STEP_PAGES: Final = 4_000
"""Pages in the log after which it is copied back: 16 MB."""

MAX_LOG_PAGES: Final = 16_000
"""Pages in the log after which a checkpoint waits for readers, so that the log can restart."""

IDLE_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 0.25


class Checkpoints:
    """The log as seen by the writer's connection."""

    def __init__(self, db: apsw.Connection) -> None:
        """Replace SQLite's automatic checkpoints."""
        self.db = db
        self.pages = 0
        self._due = LOG_STEP_PAGES
        db.set_wal_hook(self._note)

    def _note(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self.pages:
            self._due = LOG_STEP_PAGES  # the log was restarted
        self.pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        """Copy a long log back; try again when it has grown by another step."""
        if self.pages < self._due:
            return
        self._due = self.pages + LOG_STEP_PAGES
        is_long = self.pages >= MAX_LOG_PAGES
        self._run(apsw.SQLITE_CHECKPOINT_RESTART if is_long else apsw.SQLITE_CHECKPOINT_PASSIVE)

    def when_idle(self) -> None:
        """Copy everything back and truncate the log, unless a reader needs it now."""
        if self._run(apsw.SQLITE_CHECKPOINT_TRUNCATE, 0):
            self.pages, self._due = 0, LOG_STEP_PAGES

    def _run(self, mode: int, seconds: float = _PATIENCE_SECONDS) -> bool:
        # A failure here is harmless: the log stays complete, and the next commit reports a broken disk.
        with suppress(apsw.Error), busy_timeout(self.db, seconds):
            self.db.wal_checkpoint("main", mode)
            return True
        return False
