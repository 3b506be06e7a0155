"""What the runs found, as JSON, and the page that is made of it. Runs nothing and measures nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import apsw
import msgspec

from tools.sabotage.patch import Patch
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
run on; there is a column for each store, and tests that need no choice of store have dashes. The last column
is the commit at which the patch was tried. A patch that changes is tried again. How to add one:
[Contributing](../../CONTRIBUTING.md#adding-a-sabotage).
"""


class SabotageRun(msgspec.Struct, frozen=True):
    """What a run was a run of: the commit, the versions beside it, the machine."""

    commit: str
    versions: dict[str, str]
    cores: int


class SabotageResult(msgspec.Struct, frozen=True):
    """The newest verdict on each patch, and the runs that they are of."""

    runs: tuple[SabotageRun, ...]
    verdicts: tuple[PatchVerdict, ...]

    @property
    def caught(self) -> set[str]:
        """The digests of the patches that were caught."""
        return {one.patch for one in self.verdicts if one.is_caught}


def this_run() -> SabotageRun:
    """Describe a run that begins now."""
    versions = {
        "Fairlane": version("fairlane"),
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        "pytest": version("pytest"),
    }
    return SabotageRun(_commit(), versions, os.cpu_count() or 1)


def merged(
    before: SabotageResult, run: SabotageRun, verdicts: Iterable[PatchVerdict], patches: Iterable[Patch]
) -> SabotageResult:
    """Put the verdicts of a run among the earlier ones, in the order of the list.

    A verdict on a patch that is gone or has changed is dropped, and so is a run that has no verdict left.
    """
    new = (msgspec.structs.replace(one, commit=run.commit) for one in verdicts)
    newest = {one.patch: one for one in (*before.verdicts, *new)}
    kept = tuple(newest[patch.digest] for patch in patches if patch.digest in newest)
    commits = {one.commit for one in kept}
    runs = (*(one for one in before.runs if one != run), run)
    return SabotageResult(tuple(one for one in runs if one.commit in commits), kept)


def write(found: SabotageResult) -> None:
    """Keep a result, and the page that shows it."""
    RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    PAGE.write_text(page(found), encoding="utf-8")


def read() -> SabotageResult:
    """Return the result that was kept last."""
    return msgspec.json.decode(RESULT.read_bytes(), type=SabotageResult)


def page(found: SabotageResult) -> str:
    """Lay a result out for readers."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: SabotageResult) -> Iterator[str]:
    caught = sum(one.is_caught for one in found.verdicts)
    seconds = sum(one.seconds for one in found.verdicts)
    yield _HEAD
    yield f"{caught} of {len(found.verdicts)} patches were caught. Their tests ran for {seconds:.0f} s."
    yield ""
    for run in found.runs:
        versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
        yield f"- Commit {run.commit}: {versions}; {run.cores} cores."
    yield ""
    stores = sorted({store for one in found.verdicts for red in one.red for store in red.stores} - {""})
    heads = ["patch", "promise", "rules", "of", "test that went red", *stores, "commit"]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for one in found.verdicts:
        told = [f"`{red.test}`" for red in one.red] + [f"**not caught**: {one.why}"] * bool(one.why)
        where = {store for red in one.red for store in red.stores}
        cells = [one.name, one.promise, ", ".join(one.rules), one.concerns, "<br>".join(told)]
        cells += ["red" if store in where else "–" for store in stores]
        cells.append(one.commit)
        yield f"| {' | '.join(cells)} |"


def _commit() -> str:
    """Name the commit, and say if the tree has changed since, apart from what a run itself writes."""
    written = [f":(exclude){path.relative_to(ROOT)}" for path in (RESULT, PAGE)]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *written)
    return _git("describe", "--always", "--abbrev=12") + (", changed since" if changed else "")


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 (no input of others)
