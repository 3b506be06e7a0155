"""What the command's exit code means, and which error gives which. Prints nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from fairlane.model.errors import (
    ConfigError,
    EnqueueUnknown,
    FairlaneError,
    JobNotFound,
    StoreError,
    UnknownTask,
    UnknownTenant,
)
from fairlane.runtime import exits


class Exit(IntEnum):
    """How a command ended, for scripts."""

    OK = exits.OK
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    STORE = exits.STORE_GONE
    CONFIG = 5
    UNKNOWN = 6
    STALLED = exits.STOOD_STILL
    INTERRUPTED = 130
    CLOSED = 141


MEANING: Final[Mapping[Exit, str]] = {
    Exit.OK: "done; for `doctor`, nothing is bad",
    Exit.REFUSED: "not done: a policy refused it, it came too late, or `doctor` or a check found something",
    Exit.USAGE: "the command line is wrong; nothing was done",
    Exit.NOT_FOUND: "what was named is not there: a job, a task, a tenant",
    Exit.STORE: "the store cannot be used: not there, out of reach, busy, full, damaged, of another version",
    Exit.CONFIG: "a setting is wrong, or the application could not be imported",
    Exit.UNKNOWN: "sent and not confirmed: it may have happened or not; look, or repeat with the same key",
    Exit.STALLED: "a worker whose event loop stood still, or whose code broke, ended; start it again",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
    Exit.CLOSED: "whoever read the output stopped reading, as `head` does",
}


_BY_ERROR: Final[tuple[tuple[type[FairlaneError], Exit], ...]] = (
    (ConfigError, Exit.CONFIG),
    (EnqueueUnknown, Exit.UNKNOWN),
    (StoreError, Exit.STORE),
    (JobNotFound, Exit.NOT_FOUND),
    (UnknownTask, Exit.NOT_FOUND),
    (UnknownTenant, Exit.NOT_FOUND),
)


def exit_of(error: FairlaneError) -> Exit:
    """Choose the code for an error that Fairlane raised on purpose; the narrowest entry wins.

    >>> exit_of(StoreError("the disk is full")), exit_of(EnqueueUnknown("sent twice")).name
    (<Exit.STORE: 4>, 'UNKNOWN')
    """
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.REFUSED)
