"""Refuse settings that this machine or this environment cannot keep, before a worker begins."""

from __future__ import annotations

from fairlane.app.settings import Settings
from fairlane.app.worker_settings import WorkerSettings
from fairlane.duties.archive.contents import check_archive
from fairlane.worker.startup.memory_limit import refuse_unknown_memory


def refuse_impossible_settings(settings: Settings, worker: WorkerSettings, *, has_duties: bool) -> None:
    """Raise ConfigError if a limit cannot be measured here, or the archive cannot be written."""
    refuse_unknown_memory(worker)
    if has_duties:
        check_archive(settings.archive)
