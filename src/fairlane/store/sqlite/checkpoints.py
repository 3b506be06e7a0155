"""Keep the write-ahead log short. Knows nothing of what is in it.

SQLite would copy the log back into the file inside a commit, while somebody waits for the answer, and starts
it anew only when no reader uses it at that moment: with readers that come and go it would grow for ever. Here
it happens after the answers; a long log waits a little for readers, and one that nobody adds to is cut.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import apsw

from fairlane.store.sqlite.connect import hurried

LOG_STEP: Final = 4_000
"""Pages after which the log is copied back: 16 MB."""

LOG_MOST: Final = 16_000
"""Pages after which readers are waited for."""

IDLE_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 0.25


class Checkpoints:
    """The log as the one connection sees it that writes."""

    def __init__(self, db: apsw.Connection) -> None:
        """Take the place of SQLite's own policy."""
        self.db = db
        self.pages = 0
        self._due = LOG_STEP
        db.set_wal_hook(self._note)

    def _note(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self.pages:
            self._due = LOG_STEP  # it was started anew
        self.pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        """Copy a long log back, and try again when it has grown by as much."""
        if self.pages < self._due:
            return
        self._due = self.pages + LOG_STEP
        is_long = self.pages >= LOG_MOST
        self._run(apsw.SQLITE_CHECKPOINT_RESTART if is_long else apsw.SQLITE_CHECKPOINT_PASSIVE)

    def at_rest(self) -> None:
        """Copy everything back and cut the log, unless somebody else needs it now."""
        if self._run(apsw.SQLITE_CHECKPOINT_TRUNCATE, 0):
            self.pages, self._due = 0, LOG_STEP

    def _run(self, mode: int, seconds: float = _PATIENCE_SECONDS) -> bool:
        # Whatever goes wrong here harms nobody: the log is whole, and the next commit says it.
        with suppress(apsw.Error), hurried(self.db, seconds):
            self.db.wal_checkpoint("main", mode)
            return True
        return False
