"""Run the checks of `fairlane doctor` every minute, and tell as events what began and what has ended (S76).

It leaves out what reads much: damage of files, a recount of counters, a comparison with the workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from logging import ERROR, WARNING, getLogger
from typing import Final

from fairlane.app.settings import Settings
from fairlane.diagnosis.checks import run_checks
from fairlane.diagnosis.findings import findings_in, lasting_findings
from fairlane.diagnosis.journals import check_journals
from fairlane.diagnosis.snapshot import take_snapshot
from fairlane.duties.pass_result import Pause, counted
from fairlane.model.instants import MINUTE, Instant, Micros
from fairlane.model.journal.findings import DoctorFinding, Told, news_of
from fairlane.model.scope import Scope
from fairlane.runtime.clock import Clock
from fairlane.store.contract import Store
from fairlane.store.contract.journal import MAX_ENTRIES, AppendRequest

EVERY: Final[Micros] = MINUTE

_LEFT_OUT: Final = frozenset({"damage"})
_LEVELS: Final = {"warn": WARNING, "bad": ERROR}
_log: Final = getLogger("fairlane.duties")


class Diagnose:
    """The duty of the doctor. What was told is read from the events when this process begins to lead."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._settings = settings
        self._here = version("fairlane")
        self._told: Mapping[str, Told] = {}
        self._told_at: Instant | None = None

    async def __call__(self, store: Store) -> Micros:
        """Take one pass; return the pause before the next."""
        snapshot = await take_snapshot(store, self._clock, checks_files=False)
        if self._told_at is None or snapshot.now - self._told_at > 2 * EVERY:  # another may have led
            self._told = await lasting_findings(store)
        results = [
            *run_checks(
                snapshot, self._here, self._settings.doctor, store_limit=self._settings.retention.store_limit
            ),
            *await check_journals(store, self._settings.audit),
        ]
        found = findings_in(one for one in results if one.check not in _LEFT_OUT)
        news = news_of(found, self._told, snapshot.now)
        for first in range(0, len(news.entries), MAX_ENTRIES):
            entries = news.entries[first : first + MAX_ENTRIES]
            await store.journal.append(AppendRequest(scope=Scope.all(), journal="events", entries=entries))
        self._log_new(found)
        self._told, self._told_at = news.told, snapshot.now
        return Pause(EVERY, counted(len(found), "findings"))

    def _log_new(self, found: list[DoctorFinding]) -> None:
        for one in found:
            if one.key not in self._told:
                extra = {"event": "finding", "check": one.check, "advice": one.advice}
                _log.log(_LEVELS[one.level], "%s", one.what, extra=extra)
