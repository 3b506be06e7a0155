"""All checks of a snapshot, in the order in which they are reported. Ask no store."""

from __future__ import annotations

from itertools import chain

from fairlane.app.doctor_settings import DoctorSettings
from fairlane.diagnosis import capacity, store_health, thresholds, workers
from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.snapshot import StoreSnapshot


def run_checks(
    snapshot: StoreSnapshot, here: str, settings: DoctorSettings, *, store_limit: int | None = None
) -> list[CheckResult]:
    """Run every check on a snapshot of the store. `here` is the version of Fairlane that looks."""
    return list(
        chain(
            store_health.settings(snapshot),
            store_health.library(snapshot),
            store_health.remarks(snapshot),
            store_health.damage(snapshot),
            store_health.clock(snapshot),
            workers.workers(snapshot, settings),
            workers.versions(snapshot, here),
            workers.queues(snapshot),
            workers.lead(snapshot),
            workers.duties(snapshot),
            workers.leases(snapshot),
            workers.tasks(snapshot),
            workers.applications(snapshot),
            store_health.oldest(snapshot),
            capacity.queues(snapshot),
            thresholds.ready(snapshot, settings),
            thresholds.memory(snapshot, settings),
            thresholds.size(snapshot, store_limit),
            thresholds.clients(snapshot, settings),
            store_health.archive(snapshot),
            store_health.pauses(snapshot),
            store_health.system_share(snapshot),
        )
    )
