"""What a check has found: how bad, what, and what to do."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["ok", "warn", "bad"]
LEVELS: Final[tuple[Level, ...]] = ("ok", "warn", "bad")


class Finding(msgspec.Struct, frozen=True):
    """One line of a diagnosis. Whoever is not `ok` has an advice."""

    check: str
    level: Level
    what: str
    advice: str = ""


def worst(findings: list[Finding]) -> Level:
    """Give the highest level of all.

    >>> worst([Finding("a", "warn", "x"), Finding("b", "ok", "y")]), worst([])
    ('warn', 'ok')
    """
    return max((finding.level for finding in findings), key=LEVELS.index, default="ok")
