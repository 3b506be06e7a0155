"""What a leader says of its duties: when each was done last, how that went, and when it comes next (S104)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlane.model.instants import MINUTE, SECOND, Instant, Micros

DUTIES: Final[Mapping[str, str]] = {
    "reclaim": "takes back the jobs of lost workers",
    "take_stuck": "takes back jobs that run far too long",
    "promote": "makes due jobs ready",
    "expire": "cancels waiting jobs that have expired",
    "clean": "removes silent workers, old questions and ended sessions",
    "prune": "removes finished jobs whose retention is over",
    "tell_events": "numbers events and delivers them",
    "seal_audit": "seals the audit",
    "follow": "notes how jobs in place of dead ones have ended",
    "fire": "makes the jobs of schedules that are due",
    "diagnose": "runs the checks of the doctor",
}
"""Every duty by name, and what it does."""

FIRST_RETRY: Final[Micros] = 30 * SECOND
LAST_RETRY: Final[Micros] = 5 * MINUTE

ERROR_CHARS: Final = 500


class DutyReport(msgspec.Struct, frozen=True, kw_only=True):
    """A duty as of its last pass, which `worker` made. Instants are of the store's clock.

    `late` is how long after it was due the pass began, `did` what it did, empty for nothing. `failures`
    counts the passes in a row that raised; the last of them raised `error`.
    """

    name: str
    worker: str
    began_at: Instant
    took: Micros
    late: Micros
    next_at: Instant
    did: str = ""
    failures: int = 0
    error: str = ""


class DutyReports(msgspec.Struct, frozen=True):
    """The reports of a leader, as it sent them at an instant."""

    at: Instant = 0
    duties: tuple[DutyReport, ...] = ()


def overdue(report: DutyReport, at: Instant) -> Micros:
    """Return for how long a duty should have begun its next pass, at an instant; 0 before it is due."""
    return max(0, at - report.next_at)


def retry_after(failures: int) -> Micros:
    """Return the pause after a duty has failed `failures` times in a row: doubled each time, up to 5 minutes.

    >>> [retry_after(failures) // SECOND for failures in (1, 2, 3, 4, 5, 99)]
    [30, 60, 120, 240, 300, 300]
    """
    return min(LAST_RETRY, FIRST_RETRY << min(failures - 1, 10))
