"""The exit codes of the command, and which error leads to which. Prints nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from fairlane.model.access_errors import SessionNotFound, TokenNotFound, UserNotFound
from fairlane.model.errors import (
    ConfigError,
    EnqueueUnknown,
    FairlaneError,
    JobNotFound,
    StoreError,
    UnknownTask,
    UnknownTenant,
)
from fairlane.model.journal.errors import EntryNotFound
from fairlane.model.schedule.errors import ScheduleNotFound
from fairlane.model.worker_errors import StartupFailed, WorkerNotFound
from fairlane.runtime import exits


class Exit(IntEnum):
    """The exit code of a command, for scripts."""

    OK = exits.OK
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    STORE = exits.STORE_GONE
    CONFIG = 5
    UNKNOWN = 6
    STALLED = exits.EVENT_LOOP_BLOCKED
    REPLACE = exits.REPLACE
    INTERRUPTED = 130
    CLOSED = 141


MEANING: Final[Mapping[Exit, str]] = {
    Exit.OK: "success; for `doctor`, nothing is bad",
    Exit.REFUSED: "not done: a policy refused it, it came too late, or `doctor` or a check found a problem",
    Exit.USAGE: "the command line is wrong; nothing was done",
    Exit.NOT_FOUND: "the named job, task, tenant, schedule, worker, entry, user, token or session is missing",
    Exit.STORE: "the store cannot be used: missing, unreachable, busy, full, damaged, or of another version",
    Exit.CONFIG: "a setting is wrong, or the application could not be imported or started",
    Exit.UNKNOWN: "sent but not confirmed: it may have happened or not; check, or repeat with the same key",
    Exit.STALLED: "a worker ended because its event loop was blocked or its own code failed, or a supervisor "
    "because no process could be started or one had to be killed; start it again",
    Exit.REPLACE: "a worker without supervisor has stopped in good order and asks to be replaced "
    "(`max_jobs`, `max_memory`); start it again",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
    Exit.CLOSED: "the reader of the output stopped reading, as `head` does",
}


_BY_ERROR: Final[tuple[tuple[type[FairlaneError], Exit], ...]] = (
    (ConfigError, Exit.CONFIG),
    (StartupFailed, Exit.CONFIG),
    (EnqueueUnknown, Exit.UNKNOWN),
    (StoreError, Exit.STORE),
    (JobNotFound, Exit.NOT_FOUND),
    (ScheduleNotFound, Exit.NOT_FOUND),
    (WorkerNotFound, Exit.NOT_FOUND),
    (EntryNotFound, Exit.NOT_FOUND),
    (UserNotFound, Exit.NOT_FOUND),
    (TokenNotFound, Exit.NOT_FOUND),
    (SessionNotFound, Exit.NOT_FOUND),
    (UnknownTask, Exit.NOT_FOUND),
    (UnknownTenant, Exit.NOT_FOUND),
)


def exit_of(error: FairlaneError) -> Exit:
    """Return the exit code for one of Fairlane's own errors; the most specific entry wins.

    >>> exit_of(StoreError("the disk is full")), exit_of(EnqueueUnknown("sent twice")).name
    (<Exit.STORE: 4>, 'UNKNOWN')
    """
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.REFUSED)
