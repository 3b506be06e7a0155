"""What goes wrong with a worker: one that cannot start, that nobody knows, or that does not answer."""

from __future__ import annotations

from fairlane.model.errors import FairlaneError


class WorkerNotFound(FairlaneError, LookupError):
    """No worker has that id, or several ids begin so."""


class WorkerSilent(FairlaneError):
    """A worker that was asked has not answered in time."""


class StartupFailed(FairlaneError):
    """A resource or a start-up function of the application raised; nothing was claimed."""
