"""What `EnqueueUnknown` carries to send an enqueue again. Knows no job and no store."""

from __future__ import annotations

from typing import Any, Protocol


class Repeatable(Protocol):
    """The jobs of an enqueue as they were sent, which can be sent again."""

    def repeat(self) -> Any:
        """Send the jobs again; return what the enqueue would have returned."""

    async def arepeat(self) -> Any:
        """Send the jobs again; return what the enqueue would have returned."""
