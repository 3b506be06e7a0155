"""A patch that breaks one promise: what it changes, and which tests must fail. Runs nothing."""

from __future__ import annotations

import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

LIST: Final = Path(__file__).parent / "patches.toml"

LAYERS: Final = frozenset({"model", "worker", "app"})
"""What a patch may concern besides a store; its tests must fail on every store that they run on."""


YARDSTICK: Final = "oracle"
"""The store that the others are compared with: no patch breaks it, so its tests need not fail."""


class MisfitError(Exception):
    """A patch does not fit the source any more."""


class Patch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A change of one place in one file, and the tests that must each go red.

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

    @property
    def digest(self) -> str:
        """Identify the patch as it is written: a change of any field makes another."""
        return sha256(msgspec.json.encode(self)).hexdigest()[:12]

    def applied(self, text: str) -> str:
        """Return the broken text; `MisfitError` unless the old text occurs exactly once.

        >>> given = {"name": "", "promise": "", "rules": (), "concerns": "model", "file": "", "tests": ()}
        >>> patch = Patch(**given, old="<", new="<=")
        >>> patch.applied("used < limit")
        'used <= limit'
        """
        found = text.count(self.old)
        if found != 1:
            raise MisfitError(
                f"{self.name}: the old text occurs {found} times in {self.file}, not once: {self.old!r}. "
                "Rewrite the patch for the current source."
            )
        return text.replace(self.old, self.new)

    def stores(self, known: frozenset[str]) -> frozenset[str]:
        """Return the stores on which the tests must go red."""
        return frozenset({self.concerns}) if self.concerns in known else judged(known)


def judged(known: frozenset[str]) -> frozenset[str]:
    """Return the stores that must keep the promises."""
    return known - {YARDSTICK}


def read_patches(text: str) -> list[Patch]:
    """Read the list; duplicate names and unknown fields are refused."""
    tables = tomllib.loads(text)
    return [msgspec.convert({"name": name, **fields}, Patch) for name, fields in tables.items()]


def all_patches() -> list[Patch]:
    """Return the project's own list."""
    return read_patches(LIST.read_text(encoding="utf-8"))
