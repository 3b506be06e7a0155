"""Show a run while it happens, and the results of both. Counts nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

from fairlane.lab.demo.arrivals import NOISY
from fairlane.lab.workload.stats import RunStats, TenantStats, percentile
from fairlane.model.instants import SECOND, Micros

COLUMNS: Final = ("tenant", "enqueued", "waiting", "running", "done", "wait p50", "wait p95")

_LINE_EVERY: Final[Micros] = 2 * SECOND


def format_wait(duration: float) -> str:
    """Format a duration for people.

    >>> format_wait(8_400), format_wait(1_234_567), format_wait(999_999)
    ('8 ms', '1.2 s', '1.0 s')
    """
    return f"{duration / 1_000:.0f} ms" if duration < SECOND * 0.9995 else f"{duration / SECOND:.1f} s"


def row(tenant: str, stats: TenantStats) -> tuple[str, ...]:
    """Return one tenant's row of the table."""
    counts = (stats.enqueued, stats.waiting, stats.running, stats.ended)
    return (
        tenant,
        *(f"{count:,}" for count in counts),
        *(_wait(stats.waits, share) for share in (0.5, 0.95)),
    )


def _wait(waits: Sequence[Micros], share: float) -> str:
    return format_wait(percentile(waits, share)) if waits else "-"


def line(run_stats: RunStats, elapsed: Micros) -> str:
    """Return a run's state in one line, for output that is not a terminal."""
    noisy = run_stats.tenants.get(NOISY, TenantStats())
    waits = run_stats.waits(without={NOISY})
    quiet = [stats for tenant, stats in run_stats.tenants.items() if tenant != NOISY]
    return (
        f"  {elapsed / SECOND:4.0f} s   noisy: {noisy.waiting:>6,} waiting {noisy.ended:>6,} done   "
        f"quiet: {sum(one.waiting for one in quiet):>3} waiting {sum(one.ended for one in quiet):>4} done   "
        f"quiet p95 {_wait(waits, 0.95)}"
    )


class Lines:
    """Shows a run as one line every two seconds."""

    def __init__(self, print_line: Any) -> None:
        self._print = print_line
        self._next: Micros = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing was opened."""

    def __call__(self, run_stats: RunStats, elapsed: Micros) -> None:
        """Print a line if it is time for one."""
        if elapsed >= self._next and run_stats.tenants:
            self._print(line(run_stats, elapsed))
            self._next = elapsed + _LINE_EVERY


class Live:
    """Shows a run as a table that is updated in place."""

    def __init__(self, title: str) -> None:
        from rich.live import Live as RichLive  # noqa: PLC0415 (an extra; asked for only on a terminal)

        self._title = title
        self._live = RichLive(refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def __call__(self, run_stats: RunStats, elapsed: Micros) -> None:
        """Put the newest figures on the screen."""
        from rich.table import Table  # noqa: PLC0415 (as above)

        table = Table(title=f"{self._title}: {elapsed / SECOND:.0f} s", title_justify="left")
        for name in COLUMNS:
            table.add_column(name, justify="left" if name == "tenant" else "right")
        for tenant in sorted(run_stats.tenants, key=lambda name: (name != NOISY, name)):
            table.add_row(*row(tenant, run_stats.tenants[tenant]))
        self._live.update(table)


def summary(runs: Sequence[tuple[str, RunStats]]) -> list[str]:
    """Return the table of both runs, side by side."""
    lines = [f"{'':24}" + "".join(f"{title:>24}" for title, _ in runs)]
    for label, share in (
        ("quiet tenants' wait p50", 0.5),
        ("quiet tenants' wait p95", 0.95),
        ("… longest", 1.0),
    ):
        cells = (format_wait(percentile(run_stats.waits(without={NOISY}), share)) for _, run_stats in runs)
        lines.append(f"{label:24}" + "".join(f"{cell:>24}" for cell in cells))
    totals = (sum(stats.ended for stats in run_stats.tenants.values()) for _, run_stats in runs)
    lines.append(f"{'jobs done':24}" + "".join(f"{total:>24,}" for total in totals))
    return lines
