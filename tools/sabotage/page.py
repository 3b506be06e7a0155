"""What a full run found, as JSON, and the page that is made of it. Runs nothing and measures nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import apsw
import msgspec

from tools.sabotage.verdict import PatchVerdict

ROOT: Final = Path(__file__).parent.parent.parent
RESULT: Final = ROOT / "docs" / "proofs" / "sabotage.json"
PAGE: Final = ROOT / "docs" / "proofs" / "sabotage.md"

_HEAD: Final = """\
# Sabotage: tests that can fail

Generated from `docs/proofs/sabotage.json`, which `make sabotage` writes; do not edit by hand.

Each row is a small patch that breaks one promise. It was applied alone to a copy of the tree, and the tests
named beside it, green without it, went red. A patch that no test notices fails the run. Those of a store
were tried on that store, those of the model, the worker and the application on every store that their tests
run on; there is a column for each store, and tests that need no choice of store have dashes. How to add one:
[Contributing](../../CONTRIBUTING.md#adding-a-sabotage).
"""


class SabotageResult(msgspec.Struct, frozen=True):
    """One full run: of what, on what, how long, and what was found."""

    commit: str
    versions: dict[str, str]
    cores: int
    seconds: float
    verdicts: tuple[PatchVerdict, ...]


def result(verdicts: Sequence[PatchVerdict], seconds: float) -> SabotageResult:
    """Put a run beside what it was a run of."""
    versions = {
        "Fairlane": version("fairlane"),
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        "pytest": version("pytest"),
    }
    return SabotageResult(_commit(), versions, os.cpu_count() or 1, round(seconds, 1), tuple(verdicts))


def write(found: SabotageResult) -> None:
    """Keep a run, and the page that shows it."""
    RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    PAGE.write_text(page(found), encoding="utf-8")


def read() -> SabotageResult:
    """Return the run that was kept last."""
    return msgspec.json.decode(RESULT.read_bytes(), type=SabotageResult)


def page(found: SabotageResult) -> str:
    """Lay a run out for readers."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: SabotageResult) -> Iterator[str]:
    caught = sum(one.is_caught for one in found.verdicts)
    versions = ", ".join(f"{name} {number}" for name, number in found.versions.items())
    yield _HEAD
    yield f"{caught} of {len(found.verdicts)} patches were caught."
    yield f"Commit {found.commit}; {versions}; {found.seconds:.0f} s on {found.cores} cores."
    yield ""
    stores = sorted({store for one in found.verdicts for red in one.red for store in red.stores} - {""})
    heads = ["patch", "promise", "rules", "of", "test that went red", *stores]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for one in found.verdicts:
        told = [f"`{red.test}`" for red in one.red] + [f"**not caught**: {one.why}"] * bool(one.why)
        where = {store for red in one.red for store in red.stores}
        cells = [one.name, one.promise, ", ".join(one.rules), one.concerns, "<br>".join(told)]
        cells += ["red" if store in where else "–" for store in stores]
        yield f"| {' | '.join(cells)} |"


def _commit() -> str:
    """Name the commit, and say if the tree has changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--dirty=, changed since"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 (no input of others)
