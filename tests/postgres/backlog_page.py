"""The page of what a claim costs as the backlog grows, made from what was measured. Measures nothing."""

from __future__ import annotations

import statistics
from typing import Final

import msgspec

from tests.servers.proof_page import ProofPage, table

_HEAD: Final = """# What a claim costs while ten million jobs wait on PostgreSQL

Made by `python -m tests.postgres.backlog`; PostgreSQL {version}, {tenants:,} tenants with three tasks each,
claims of {batch} jobs that are settled before the next, {claims:,} from each backlog in turn, fsync on.
*Processor*: time of the server's session for one claim, in milliseconds. *Took*: how long the caller
waited, which on a machine that has other things to do says little. In brackets how many times as much as
with the smallest backlog; asked is at most 2 for p50 and p95 of a million. *Filled*: seconds until all jobs
were there, counted and vacuumed. *Size*: of the table with its indexes. No job was lost or counted twice:
what is left was counted at the end.

"""
_COLUMNS: Final = (
    "| jobs waiting | processor p50 | p95 | p99 | took p50 | p95 | p99 | filled | size |",
    "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)


class Quantiles(msgspec.Struct, frozen=True):
    """Three of many figures."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, figures: list[float]) -> Quantiles:
        """Take them, to the microsecond.

        >>> Quantiles.of([float(n) for n in range(101)])
        Quantiles(p50=50.0, p95=95.0, p99=99.0)
        """
        cuts = statistics.quantiles(figures, n=100, method="inclusive")
        return cls(*(round(cuts[n - 1], 3) for n in (50, 95, 99)))


class Backlog(msgspec.Struct, frozen=True):
    """What was measured while so many jobs waited; milliseconds."""

    jobs: int
    fill_seconds: float
    bytes: int
    processor: Quantiles
    took: Quantiles


class Backlogs(msgspec.Struct, frozen=True):
    """All of them, the smallest first, and how."""

    version: str
    batch: int
    tenants: int
    claims: int
    rows: list[Backlog]


def _say(kept: Backlogs) -> str:
    head = _HEAD.format(version=kept.version, tenants=kept.tenants, batch=kept.batch, claims=kept.claims)
    return head + table(_COLUMNS, (_cells(row, kept.rows[0]) for row in kept.rows))


def _cells(row: Backlog, first: Backlog) -> list[str]:
    cells = [f"{row.jobs:,}"]
    for found, least in ((row.processor, first.processor), (row.took, first.took)):
        pairs = zip(msgspec.structs.astuple(found), msgspec.structs.astuple(least), strict=True)
        cells += [f"{figure:.2f} ({figure / compared:.2f})" for figure, compared in pairs]
    return [*cells, f"{row.fill_seconds:.0f} s", f"{row.bytes / 2**30:.2f} GB"]


PAGE: Final = ProofPage("postgres-backlog", Backlogs, _say)
