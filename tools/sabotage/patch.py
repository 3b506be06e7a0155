"""One small patch that breaks one promise: what it changes, and which tests must notice. Runs nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import msgspec

LIST: Final = Path(__file__).parent / "patches.toml"

LAYERS: Final = frozenset({"model", "worker", "app"})
"""What a patch may concern besides a store; such a patch must be noticed on every store its tests run on."""


YARDSTICK: Final = "oracle"
"""The store that others are measured by: nobody breaks it, and it need not notice anything."""


class MisfitError(Exception):
    """A patch that no longer fits the source it was written for."""


class Patch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Exactly one place in one file, and the tests of which each must go red.

    `concerns` is the name of a store, or one of `LAYERS`.
    """

    name: str
    promise: str
    rules: tuple[str, ...]
    concerns: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """Give the broken text; `MisfitError` unless the old text stands there exactly once.

        >>> given = {"name": "", "promise": "", "rules": (), "concerns": "model", "file": "", "tests": ()}
        >>> patch = Patch(**given, old="<", new="<=")
        >>> patch.applied("used < limit")
        'used <= limit'
        """
        found = text.count(self.old)
        if found != 1:
            raise MisfitError(
                f"{self.name}: the old text stands {found} times in {self.file}, not once: {self.old!r}. "
                "Write the patch anew for the source as it is now."
            )
        return text.replace(self.old, self.new)

    def stores(self, known: frozenset[str]) -> frozenset[str]:
        """Name the stores on which the tests must go red, of those that there are."""
        return frozenset({self.concerns}) if self.concerns in known else judged(known)


def judged(known: frozenset[str]) -> frozenset[str]:
    """Name the stores that promise something."""
    return known - {YARDSTICK}


def read_patches(text: str) -> list[Patch]:
    """Read the list; a name can stand there only once, and a field that means nothing is refused."""
    tables = tomllib.loads(text)
    return [msgspec.convert({"name": name, **fields}, Patch) for name, fields in tables.items()]


def all_patches() -> list[Patch]:
    """Give the project's own list."""
    return read_patches(LIST.read_text(encoding="utf-8"))
