"""The result of a check: its level, what was found, and what to do."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["ok", "warn", "bad"]
LEVELS: Final[tuple[Level, ...]] = ("ok", "warn", "bad")


class CheckResult(msgspec.Struct, frozen=True):
    """One line of a diagnosis. Every result that is not `ok` has advice.

    `subject` is what it is about, as `queue mail`, if a check judges several things: it stays the same while
    the numbers in `what` change.
    """

    check: str
    level: Level
    what: str
    advice: str = ""
    subject: str = ""


def worst(findings: list[CheckResult]) -> Level:
    """Return the worst level of all.

    >>> worst([CheckResult("a", "warn", "x"), CheckResult("b", "ok", "y")]), worst([])
    ('warn', 'ok')
    """
    return max((finding.level for finding in findings), key=LEVELS.index, default="ok")
