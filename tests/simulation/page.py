"""The page of the simulation's sabotages: what each breaks, and the seed that noticed. Measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from tests.campaigns.book import ROOT

PAGE: Final = ROOT / "docs" / "proofs" / "simulation.md"
DATA: Final = PAGE.with_suffix(".json")

_HEAD: Final = """\
# Sabotage in the simulation

Generated from `docs/proofs/simulation.json`, which `python -m tests.simulation.sabotages --write` writes;
do not edit by hand.

Each row breaks one promise in memory, in the oracle or in the worker, and runs seeds from 0 on. The seed is
the first that fails with the sabotage and not without it; asked for is one of the first 2,000. How the
simulation works: [The simulation](../explanation/simulation.md).
"""


class Row(msgspec.Struct, frozen=True):
    """One sabotage, and what noticed it; without a seed, `said` is why not."""

    name: str
    promise: str
    seed: int | None
    said: str


class Findings(msgspec.Struct, frozen=True):
    """All of them, and the commit that was tried."""

    commit: str
    rows: tuple[Row, ...]


def read() -> Findings:
    """Return what was found last."""
    return msgspec.json.decode(DATA.read_bytes(), type=Findings)


def write(findings: Findings) -> None:
    """Keep what was found, and lay it out."""
    DATA.write_bytes(msgspec.json.format(msgspec.json.encode(findings), indent=1) + b"\n")
    PAGE.write_text(page(findings), encoding="utf-8")


def page(findings: Findings) -> str:
    """Lay out what was found."""
    found = sum(one.seed is not None for one in findings.rows)
    lines = [
        _HEAD,
        f"{found} of {len(findings.rows)} were noticed. Commit {findings.commit}.",
        "",
        "| sabotage | promise | seed | what the seed said |",
        "|---|---|---|---|",
        *(_line(one) for one in findings.rows),
    ]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    cells: Sequence[str] = (row.name, row.promise, "–" if row.seed is None else str(row.seed), row.said)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
