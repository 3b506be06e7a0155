"""Compare a store with the thresholds of `[doctor]`. Silent below them; reads only the snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from fairlane.app.doctor_settings import MEGABYTE, DoctorSettings
from fairlane.diagnosis.result import CheckResult
from fairlane.diagnosis.snapshot import StoreSnapshot
from fairlane.model.policy.pressure import PRUNE_ABOVE


def ready(snapshot: StoreSnapshot, thresholds: DoctorSettings) -> Iterator[CheckResult]:
    """Report queues with more ready jobs than `max_ready`."""
    most = thresholds.max_ready
    for queue, number in sorted(snapshot.ready().items()):
        if most is not None and number > most:
            what = f"queue {queue}: {number:,} jobs are ready, more than {most:,}."
            advice = (
                "`fairlane jobs peek` shows who is next, `fairlane queues` how fast it empties. Give the "
                "lane more slots or add workers; if this is normal, raise doctor.max_ready."
            )
            yield CheckResult("depth", "warn", what, advice, f"queue {queue}")


def memory(snapshot: StoreSnapshot, thresholds: DoctorSettings) -> Iterator[CheckResult]:
    """Report a server that uses more memory than `max_memory`."""
    used, most = snapshot.inspection.memory, thresholds.max_memory
    if used is not None and most is not None and used > most:
        what = f"the server uses {used // MEGABYTE:,} MB of memory, more than {most // MEGABYTE:,} MB."
        advice = (
            "Keep finished jobs and results for a shorter time ([retention]), send smaller payloads, or "
            "raise doctor.max_memory."
        )
        yield CheckResult("memory", "warn", what, advice, "above doctor.max_memory")


def size(snapshot: StoreSnapshot, store_limit: int | None) -> Iterator[CheckResult]:
    """Report a store that is nearly full: its history is removed early, and later jobs are refused (S126)."""
    measured = snapshot.inspection.size
    if measured is None or measured.limit_with(store_limit) is None:
        return
    limit, level = measured.limit_with(store_limit) or 0, measured.pressure(store_limit)
    share = f"{measured.per_cent(store_limit):.0f} %"
    of = f"{measured.used // MEGABYTE:,} MB of {limit // MEGABYTE:,} MB ({share})"
    if level == "ok":
        yield CheckResult("size", "ok", f"the store takes {of}")
        return
    happens = (
        f"above {PRUNE_ABOVE} % its oldest history is removed before its time"
        if level == "warn"
        else "its oldest history is removed before its time"
    )
    advice = (
        "Keep finished jobs and results for a shorter time ([retention]), send smaller payloads, or give it "
        "more room: retention.store_limit, on Redis also maxmemory."
    )
    yield CheckResult("size", level, f"the store takes {of}: {happens}.", advice, "of the store")


def clients(snapshot: StoreSnapshot, thresholds: DoctorSettings) -> Iterator[CheckResult]:
    """Report a server to which fewer than `min_clients` others are connected."""
    found, least = snapshot.inspection.clients, thresholds.min_clients
    if found is not None and found < least:
        others = "nobody else is" if not found else f"only {found} other connections are"
        what = f"{others} connected to the server; at least {least} should be."
        advice = "Are the workers and the application running, and do they use this URL?"
        yield CheckResult("clients", "bad" if snapshot.ready() else "warn", what, advice)
