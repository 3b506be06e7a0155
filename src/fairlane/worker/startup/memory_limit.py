"""Refuse a bound of memory where nobody says how much memory a process takes."""

from __future__ import annotations

from fairlane.app.worker_settings import WorkerSettings
from fairlane.model.errors import ConfigError
from fairlane.runtime.memory import is_memory_known


def refuse_unknown_memory(settings: WorkerSettings) -> None:
    """Raise `ConfigError` if `max_memory` is set and could not be kept."""
    if settings.max_memory is not None and not is_memory_known():
        message = "this system has no /proc/self/statm, which says how much memory a process takes."
        raise ConfigError(message, key="worker.max_memory", allowed='"none"')
