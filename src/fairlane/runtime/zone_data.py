"""Tell which version of the time zones this process reads. Knows no schedule."""

from __future__ import annotations

import zoneinfo
from importlib.util import find_spec
from pathlib import Path
from typing import Final

UNKNOWN: Final = "unknown"


def zone_data_version() -> str:
    """Return the version of the zone data, as "2026b"; `UNKNOWN` for a system whose data does not say.

    It is read anew each time: a system's data is replaced while processes run. `forget_zones` of the model
    makes them read it.
    """
    folders = [*map(Path, zoneinfo.TZPATH), *_package()]
    return next((_version_in(folder) for folder in folders if (folder / "UTC").exists()), UNKNOWN)


def _package() -> list[Path]:
    """Return where the package tzdata keeps its data, which is read where the system has none."""
    spec = find_spec("tzdata")
    return [Path(folder) / "zoneinfo" for folder in (spec and spec.submodule_search_locations) or ()]


def _version_in(folder: Path) -> str:
    """Return what a folder says: the first line of its rules, "# version 2026b", or a file of its own."""
    for name in ("tzdata.zi", "+VERSION"):
        try:
            with (folder / name).open(encoding="utf-8") as file:
                words = file.readline(100).split()
        except (OSError, UnicodeError):
            continue
        if words:
            return words[-1]
    return UNKNOWN
