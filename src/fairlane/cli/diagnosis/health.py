"""Judge the store itself: settings, damage, clocks, whose jobs it holds. Pure: asks nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from fairlane.cli.diagnosis.finding import Finding, Level
from fairlane.cli.diagnosis.sight import Sight
from fairlane.cli.moments import ago, span
from fairlane.model.instants import MINUTE, SECOND, Micros
from fairlane.model.scope import SYSTEM

OLDEST_SQLITE: Final = (3, 51, 3)
"""Older ones have a bug that corrupts files which several processes share."""

_SKEW_SEEN: Final[Micros] = SECOND
_SKEW_HARMFUL: Final[Micros] = 5 * SECOND
_SHOWN: Final = 3
_LONG_WAIT: Final[Micros] = 15 * MINUTE


def settings(sight: Sight) -> Iterator[Finding]:
    """Whether the store keeps what it acknowledges."""
    said = sight.inspection.settings
    if "schema" in said:
        yield Finding("schema", "ok", f"version {said['schema']}, which this Fairlane needs")
    if "journal_mode" in said:
        if said["journal_mode"] != "wal":
            what = f"the journal mode is {said['journal_mode']}, not wal: readers and the writer wait."
            yield Finding("settings", "bad", what, "Is the file on a network drive? Put it on a local disk.")
        elif said["synchronous"] in {"full", "extra"}:
            yield Finding("settings", "ok", "an acknowledged job survives a power cut (synchronous=full)")
        else:
            what = f"synchronous is {said['synchronous']}: a power cut may lose the last moments."
            yield Finding("settings", "warn", what, "Leave ?synchronous=… out of the URL if that matters.")


def library(sight: Sight) -> Iterator[Finding]:
    """Whether the store's library is safe to share a file with."""
    version = sight.inspection.settings.get("sqlite")
    if version is None:
        return
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        what = f"SQLite {version} can corrupt a file that several processes share."
        yield Finding("library", "bad", what, "Upgrade apsw, which brings its own SQLite.")
    else:
        yield Finding("library", "ok", f"SQLite {version}")


def remarks(sight: Sight) -> Iterator[Finding]:
    """Whatever the store itself has to say."""
    for one in sight.inspection.remarks:
        yield Finding(one.check, one.level, one.what, one.advice)


def damage(sight: Sight) -> Iterator[Finding]:
    """Whether the store's files are whole."""
    found = sight.inspection.damage
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        advice = "Stop all workers, keep a copy of the file, and restore it from a backup."
        yield Finding("damage", "bad", f"the file is damaged: {'; '.join(found[:_SHOWN])}{more}", advice)
    elif not sight.inspection.is_checked:
        what = "the file is too large to be checked in a few seconds."
        yield Finding("damage", "warn", what, "Run `PRAGMA quick_check` on a copy of it.")
    else:
        yield Finding("damage", "ok", "none was found")


def clock(sight: Sight) -> Iterator[Finding]:
    """Whether this machine and the store agree about the time."""
    skew = abs(sight.now - sight.wall)
    if skew < _SKEW_SEEN:
        yield Finding("clock", "ok", "the store and this machine agree")
        return
    level: Level = "bad" if skew >= _SKEW_HARMFUL else "warn"
    side = "ahead of" if sight.now > sight.wall else "behind"
    what = f"the store's clock is {span(skew)} {side} this machine's."
    yield Finding("clock", level, what, "Let both keep time by NTP: jobs are due by the store's clock.")


def system_share(sight: Sight) -> Iterator[Finding]:
    """Whether most jobs forgot to name their tenant (S10)."""
    by_tenant: Counter[str] = Counter()
    for count in sight.counts:
        by_tenant[count.tenant] += count.jobs
    others = by_tenant.total() - by_tenant[SYSTEM]
    if others and by_tenant[SYSTEM] > others:
        what = f"tenant {SYSTEM} has {by_tenant[SYSTEM]} of {by_tenant.total()} jobs, more than all others."
        advice = (
            "Name the tenant with using(tenant=…), or set tenancy to `required` so that none is forgotten."
        )
        yield Finding("tenants", "warn", what, advice)


def oldest(sight: Sight) -> Iterator[Finding]:
    """How long the next job of each queue has waited."""
    for queue, number in sorted(sight.ready().items()):
        next_jobs = sight.nexts.get(queue)
        if not next_jobs:
            what = f"queue {queue}: {number} ready, none may start now"
            yield Finding("waiting", "ok", what, "`fairlane explain ID` says what holds a job.")
            continue
        (job, *_) = next_jobs
        waited = max(0, sight.now - job.run_at)
        what = f"queue {queue}: {number} ready, the next has waited for {span(waited)}"
        if waited < _LONG_WAIT:
            yield Finding("waiting", "ok", what)
        else:
            yield Finding("waiting", "warn", what, f"`fairlane explain {job.id}` says why.")


def pauses(sight: Sight) -> Iterator[Finding]:
    """Which queues and tasks were paused or closed, and perhaps forgotten."""
    for view in (*sight.queues, *sight.task_policies):
        for word, hold in (("paused", view.paused), ("closed", view.closed)):
            if hold is not None:
                what = f"{view.subject} was {word} {ago(hold.set_at, sight.now)} by {hold.who}: {hold.reason}"
                yield Finding("pauses", "warn", what, f"`fairlane resume {view.subject}` ends it.")
