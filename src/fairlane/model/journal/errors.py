"""What can be wrong with a question about a journal."""

from __future__ import annotations

from fairlane.model.errors import FairlaneError


class EntryNotFound(FairlaneError, LookupError):
    """No entry with that number is stored for the caller; another tenant's answers the same."""

    def __init__(self, number: int) -> None:
        """Name the number."""
        super().__init__(f"no entry {number}")
        self.number = number
