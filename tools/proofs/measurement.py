"""A stored measurement: the report, its commit, and the command that repeats it."""

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


class Measurement(msgspec.Struct, frozen=True):
    """The result of a run. `report` is in the format of the benchmark that printed it.

    `small` says that it was a quick look, for the form of the pages, not for their figures.
    """

    commit: str
    command: str
    small: bool
    report: msgspec.Raw


def circumstances(measurement: Measurement, host: Mapping[str, object]) -> list[str]:
    """Return the command, commit and machine of a measurement, as lines of a page."""
    told = ", ".join(f"{key} {value}" for key, value in host.items())
    small = [SMALL, ""] if measurement.small else []
    return ["```sh", measurement.command, "```", "", *small, f"Commit {measurement.commit}; {told}.", ""]


def write(name: str, measurement: Measurement) -> None:
    """Store a measurement atomically: an interrupt leaves the old file or the new one."""
    half = PROOFS / f"{name}.json.part"
    half.write_bytes(msgspec.json.format(msgspec.json.encode(measurement), indent=1) + b"\n")
    half.replace(PROOFS / f"{name}.json")


def read(name: str) -> Measurement | None:
    """Return the last stored measurement of this name; None if there is none."""
    file = PROOFS / f"{name}.json"
    return msgspec.json.decode(file.read_bytes(), type=Measurement) if file.exists() else None


def commit() -> str:
    """Return the commit, and whether the tree has changed since; generated files do not count."""
    git = ["git", "-C", str(ROOT)]
    generated = [":!docs/proofs", ":!README.md"]
    name = _said(*git, "rev-parse", "--short=12", "HEAD")
    return name + (", changed since" if _said(*git, "status", "--porcelain", "--", ".", *generated) else "")


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 (no input of others)
