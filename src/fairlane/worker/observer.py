"""What a worker tells whoever watches it, such as a supervisor in another process. Knows nobody who does."""

from __future__ import annotations

from typing import Protocol

from fairlane.model.instants import Micros


class WorkerObserver(Protocol):
    """Hears what becomes of a worker. No call may block; `alive` is called in the portal thread."""

    def ready(self, shutdown_deadline: Micros) -> None:
        """Called when the worker is registered, with how long its jobs may go on once it drains."""
        ...

    def replacement_wanted(self) -> None:
        """Called when the worker has begun to drain by itself, and that another should take its place."""
        ...

    def claims_ended(self) -> None:
        """Called when the worker claims nothing more: it drains, and no claim is under way."""
        ...

    def alive(self) -> None:
        """Called about once a second, as long as the worker's portal thread runs."""
        ...


class NoObserver:
    """Nobody watches."""

    def ready(self, shutdown_deadline: Micros) -> None:
        """Do nothing."""

    def replacement_wanted(self) -> None:
        """Do nothing."""

    def claims_ended(self) -> None:
        """Do nothing."""

    def alive(self) -> None:
        """Do nothing."""
