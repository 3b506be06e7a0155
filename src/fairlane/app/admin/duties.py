"""`app.duties`: who does the duties, and how each of them went.

All tenants share the duties, so from inside a tenant they cannot be read (S9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlane.app.ambient import scope_of_all
from fairlane.app.client import Client
from fairlane.model.duty_report import DUTIES, DutyReport, overdue
from fairlane.model.instants import SECOND, Instant, to_datetime
from fairlane.store.contract.registry import DutiesReply, DutiesRequest

LEAD: Final = "duties"
_WHY: Final = "duties serve all tenants"


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyView:
    """A duty as its leader last reported it; a leader reports as often as it renews its lead.

    `worker` made the last pass, at `last_at`, in `took` seconds, and it `did` that; empty is nothing. `lag`
    is how many seconds that pass began after it was due, or for how many the next one is overdue. `failures`
    counts the passes in a row that failed, the last of them by `error`. Without a pass so far all are None.
    """

    name: str
    about: str
    worker: str | None = None
    last_at: datetime | None = None
    took: float | None = None
    lag: float | None = None
    did: str = ""
    next_at: datetime | None = None
    failures: int = 0
    error: str = ""


class ReportedDuties:
    """The duties of a store. Each method has an async twin whose name starts with `a`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def leader(self) -> str | None:
        """Return the id of the process that does the duties now; None if none does."""
        return self._client.portal.run(self.aleader())

    async def aleader(self) -> str | None:
        """Return the id of the process that does the duties now; None if none does."""
        leader = (await self._read()).leader
        return None if leader is None else leader.worker

    def list(self) -> Sequence[DutyView]:
        """Return every duty with its last pass, in the order of their names."""
        return self._client.portal.run(self.alist())

    async def alist(self) -> Sequence[DutyView]:
        """Return every duty with its last pass, in the order of their names."""
        found = (await self._read()).reports
        reports = {one.name: one for one in found.duties}
        names = sorted({*DUTIES, *reports})
        return tuple(_view(name, reports.get(name), found.at) for name in names)

    async def _read(self) -> DutiesReply:
        request = DutiesRequest(scope=scope_of_all(_WHY), name=LEAD)
        return await self._client.store.registry.duties(request)


def _view(name: str, report: DutyReport | None, at: Instant) -> DutyView:
    about = DUTIES.get(name, "a duty of another version")
    if report is None:
        return DutyView(name=name, about=about)
    return DutyView(
        name=name,
        about=about,
        worker=report.worker,
        last_at=to_datetime(report.began_at),
        took=report.took / SECOND,
        lag=max(report.late, overdue(report, at)) / SECOND,
        did=report.did,
        next_at=to_datetime(report.next_at),
        failures=report.failures,
        error=report.error,
    )
