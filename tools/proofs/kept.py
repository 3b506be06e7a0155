"""One measurement as it is kept: the report, of which commit it is, and the command that repeats it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parent.parent.parent
PROOFS: Final = ROOT / "docs" / "proofs"
PLOTS: Final = PROOFS / "plots"


SMALL: Final = "**A quick look at very little, which proves nothing.** `make proofs` measures in earnest."


class Kept(msgspec.Struct, frozen=True):
    """What a run has given. `report` is in the words of the benchmark that printed it.

    `small` says that it was a quick look, for the form of the pages, not for their figures.
    """

    commit: str
    command: str
    small: bool
    report: msgspec.Raw


def circumstances(kept: Kept, host: Mapping[str, object]) -> list[str]:
    """Say by which command, of which commit and on what it was measured, as lines of a page."""
    told = ", ".join(f"{key} {value}" for key, value in host.items())
    small = [SMALL, ""] if kept.small else []
    return ["```sh", kept.command, "```", "", *small, f"Commit {kept.commit}; {told}.", ""]


def write(name: str, kept: Kept) -> None:
    """Keep a measurement: the file is the old one or the new one, whenever this is interrupted."""
    half = PROOFS / f"{name}.json.part"
    half.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
    half.replace(PROOFS / f"{name}.json")


def read(name: str) -> Kept | None:
    """Give what was kept last under this name; None if nothing was."""
    file = PROOFS / f"{name}.json"
    return msgspec.json.decode(file.read_bytes(), type=Kept) if file.exists() else None


def commit() -> str:
    """Name the commit, and say if the tree has changed since; what is generated does not count."""
    git = ["git", "-C", str(ROOT)]
    generated = [":!docs/proofs", ":!README.md"]
    name = _said(*git, "rev-parse", "--short=12", "HEAD")
    return name + (", changed since" if _said(*git, "status", "--porcelain", "--", ".", *generated) else "")


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 (no input of others)
