"""Refuse settings that this machine or this environment cannot keep, before a worker begins."""

from __future__ import annotations

from fairlane.app.settings import Settings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.archive.contents import check_archive
from fairlane.model.errors import ConfigError
from fairlane.runtime.memory import is_memory_known


def refuse_impossible_settings(settings: Settings, worker: WorkerSettings, *, has_duties: bool) -> None:
    """Raise `ConfigError` if `max_memory` is set and could not be kept, or the archive not be written."""
    if worker.max_memory is not None and not is_memory_known():
        message = "this system has no /proc/self/statm, which says how much memory a process takes."
        raise ConfigError(message, key="worker.max_memory", allowed='"none"')
    if has_duties:
        check_archive(settings.archive)
