"""What a pass of a duty returns: the pause before the next one, and what it did. Knows no duty."""

from __future__ import annotations

from typing import Self

from fairlane.model.instants import Micros


class Pause(int):
    """How long a duty rests before its next pass, and in words what this pass did; empty for nothing."""

    did: str

    def __new__(cls, rest: Micros, did: str = "") -> Self:
        """Make it from both."""
        pause = super().__new__(cls, rest)
        pause.did = did
        return pause


def counted(number: int, what: str) -> str:
    """Return what a pass did to so many, empty if to none.

    >>> counted(3, "made ready"), counted(0, "made ready")
    ('3 made ready', '')
    """
    return f"{number} {what}" if number else ""
