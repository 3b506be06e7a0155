"""What is known of one duty in this process: its last pass, how late it began, and its failures (S104)."""

from __future__ import annotations

import re
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from fairlane.app.redaction import REDACTED
from fairlane.duties.pass_result import Pause
from fairlane.model.duty_report import ERROR_CHARS, DutyReport, DutyReports, overdue, retry_after
from fairlane.model.errors import StoreError
from fairlane.model.instants import Instant, Micros
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store

Duty: TypeAlias = Callable[[Store], Awaitable[Micros]]
"""One pass; it returns the pause before the next, a `Pause` to say what it did."""

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


class LedTime:
    """The store's clock as the leader knows it: the local one, set whenever the lead is renewed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: Micros = 0

    def set(self, now: Instant) -> None:
        """Note what time the store says it is."""
        self._ahead = now - self._clock.elapsed()

    def now(self) -> Instant:
        """Return what time it is by the store's clock."""
        return self._clock.elapsed() + self._ahead


class DutyWatch:
    """Makes the passes of one duty and notes how they went. An outage of the store is no failure."""

    def __init__(self, name: str, duty: Duty, worker: str, time: LedTime) -> None:
        self.report: DutyReport | None = None
        self.name = name
        self._duty = duty
        self._worker = worker
        self._time = time

    def rest(self) -> None:
        """Note that this process does not lead: what it knows of the duty is of before."""
        self.report = None

    def take_over(self, reports: DutyReports) -> None:
        """Go on from what another leader has reported, unless this one has made a pass."""
        if self.report is None:
            self.report = next((one for one in reports.duties if one.name == self.name), None)

    async def __call__(self, store: Store) -> Micros:
        """Make one pass; note what it did, or what it raised."""
        before, began_at = self.report, self._time.now()
        try:
            pause = await self._duty(store)
        except (StoreError, CancelledError):
            raise
        except BaseException as error:
            self._note_error(error, before, began_at)
            raise
        self.report = self._report(before, began_at, pause, did=pause.did if isinstance(pause, Pause) else "")
        return pause

    def failed(self) -> Micros:
        """Return how long to wait after a pass that raised."""
        return retry_after(self.report.failures if self.report else 1)

    def _note_error(self, error: BaseException, before: DutyReport | None, began_at: Instant) -> None:
        failures = 1 if before is None else before.failures + 1
        text = (REDACTED.text(f"{type(error).__name__}: {error}") or "")[:ERROR_CHARS]
        report = self._report(before, began_at, retry_after(failures))
        self.report = msgspec.structs.replace(report, failures=failures, error=text)

    def _report(
        self, before: DutyReport | None, began_at: Instant, pause: Micros, did: str = ""
    ) -> DutyReport:
        now = self._time.now()
        return DutyReport(
            name=self.name,
            worker=self._worker,
            began_at=began_at,
            took=now - began_at,
            late=0 if before is None else overdue(before, began_at),
            next_at=now + pause,
            did=did,
        )


def duty_name(duty: Duty) -> str:
    """Return the name of a duty, from that of its function or class."""
    return _CAPITAL.sub("_", getattr(duty, "__name__", type(duty).__name__)).lower()
