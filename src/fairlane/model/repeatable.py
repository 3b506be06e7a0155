"""What an error of an unknown enqueue carries. Knows no job and no store."""

from __future__ import annotations

from typing import Any, Protocol


class Repeatable(Protocol):
    """The jobs of an enqueue as they were sent, and the way to send them once more."""

    def repeat(self) -> Any:
        """Send them and return what the enqueue would have returned."""

    async def arepeat(self) -> Any:
        """Send them and return what the enqueue would have returned."""
