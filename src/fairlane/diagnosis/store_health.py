"""Check the store itself: settings, damage, clocks, waits, pauses. Reads only the snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from fairlane.diagnosis.result import CheckResult, Level
from fairlane.diagnosis.snapshot import StoreSnapshot
from fairlane.model.durations import ago, format_duration
from fairlane.model.instants import MINUTE, SECOND, Micros
from fairlane.model.scope import SYSTEM

OLDEST_SQLITE: Final = (3, 51, 3)
"""Older versions have a bug that corrupts files shared by several processes."""

_SKEW_SEEN: Final[Micros] = SECOND
_SKEW_HARMFUL: Final[Micros] = 5 * SECOND
_SHOWN: Final = 3
_LONG_WAIT: Final[Micros] = 15 * MINUTE


def settings(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report whether acknowledged jobs survive a power cut."""
    reported = snapshot.inspection.settings
    if "schema" in reported:
        yield CheckResult("schema", "ok", f"version {reported['schema']}, which this Fairlane needs")
    if "journal_mode" in reported:
        if reported["journal_mode"] != "wal":
            what = f"the journal mode is {reported['journal_mode']}, not wal: readers block the writer."
            yield CheckResult(
                "settings", "bad", what, "Is the file on a network drive? Put it on a local disk."
            )
        elif reported["synchronous"] in {"full", "extra"}:
            yield CheckResult("settings", "ok", "an acknowledged job survives a power cut (synchronous=full)")
        else:
            what = f"synchronous is {reported['synchronous']}: a power cut may lose the most recent changes."
            yield CheckResult("settings", "warn", what, "Remove ?synchronous=… from the URL if that matters.")


def library(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report whether the SQLite library can safely share a file between processes."""
    version = snapshot.inspection.settings.get("sqlite")
    if version is None:
        return
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        what = f"SQLite {version} can corrupt a file that several processes share."
        yield CheckResult("library", "bad", what, "Upgrade apsw, which brings its own SQLite.")
    else:
        yield CheckResult("library", "ok", f"SQLite {version}")


def remarks(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report the store's own remarks."""
    for one in snapshot.inspection.remarks:
        yield CheckResult(one.check, one.level, one.what, one.advice, "server")


def damage(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report whether the store's file is damaged."""
    found = snapshot.inspection.damage
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        advice = "Stop all workers, keep a copy of the file, and restore it from a backup."
        yield CheckResult("damage", "bad", f"the file is damaged: {'; '.join(found[:_SHOWN])}{more}", advice)
    elif not snapshot.inspection.is_checked:
        what = "the file is too large to check in a few seconds."
        yield CheckResult("damage", "warn", what, "Run `PRAGMA quick_check` on a copy of it.")
    else:
        yield CheckResult("damage", "ok", "no damage found")


def clock(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report whether the clocks of this machine and the store agree."""
    skew = abs(snapshot.now - snapshot.wall)
    if skew < _SKEW_SEEN:
        yield CheckResult("clock", "ok", "the store and this machine agree")
        return
    level: Level = "bad" if skew >= _SKEW_HARMFUL else "warn"
    side = "ahead of" if snapshot.now > snapshot.wall else "behind"
    what = f"the store's clock is {format_duration(skew)} {side} this machine's."
    yield CheckResult("clock", level, what, "Synchronize both with NTP: jobs are due by the store's clock.")


def archive(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report jobs that wait for the archive (S105); that it cannot be written is a finding of the duties."""
    if snapshot.unarchived:
        what = f"{snapshot.unarchived} removed jobs wait for the archive"
        advice = "They stay in the store until it has them. `fairlane duties` says how `prune` went."
        yield CheckResult("archive", "ok", what, advice)


def system_share(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report whether most jobs do not name their tenant (S10)."""
    by_tenant: Counter[str] = Counter()
    for count in snapshot.counts:
        by_tenant[count.tenant] += count.jobs
    others = by_tenant.total() - by_tenant[SYSTEM]
    if others and by_tenant[SYSTEM] > others:
        what = f"tenant {SYSTEM} has {by_tenant[SYSTEM]} of {by_tenant.total()} jobs, more than all others."
        advice = "Give the tenant with using(tenant=…), or set tenancy to `required`: then every job must."
        yield CheckResult("tenants", "warn", what, advice)


def oldest(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report how long the next job of each queue has waited."""
    for queue, number in sorted(snapshot.ready().items()):
        next_jobs = snapshot.next_jobs.get(queue)
        if not next_jobs:
            what = f"queue {queue}: {number} ready, none can start now"
            yield CheckResult("waiting", "ok", what, "`fairlane explain ID` shows what a job waits for.")
            continue
        (job, *_) = next_jobs
        waited = max(0, snapshot.now - job.run_at)
        what = f"queue {queue}: {number} ready, the next has waited for {format_duration(waited)}"
        if waited < _LONG_WAIT:
            yield CheckResult("waiting", "ok", what)
        else:
            advice = f"`fairlane explain {job.id}` says why."
            yield CheckResult("waiting", "warn", what, advice, f"queue {queue}")


def pauses(snapshot: StoreSnapshot) -> Iterator[CheckResult]:
    """Report queues and tasks that are paused or closed, perhaps forgotten."""
    for view in (*snapshot.queues, *snapshot.task_policies):
        for state, hold in (("paused", view.paused), ("closed", view.closed)):
            if hold is not None:
                since = ago(hold.set_at, snapshot.now)
                what = f"{view.subject} was {state} {since} by {hold.who}: {hold.reason}"
                advice = f"`fairlane resume {view.subject}` ends it."
                yield CheckResult("pauses", "warn", what, advice, f"{view.subject} {state}")
