"""Choose among the versions of a task that workers have published (S33). Reads no store."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.model.instants import Instant
from fairlane.store.contract.registry import LIVE_WITHIN, TaskRecord, TasksRequest, TaskView


def task_key(record: TaskRecord) -> str:
    """Return the key of a published task. Each version has its own, so that an old worker hides no newer one.

    No task name contains an @ (S3). Stores written by an earlier Fairlane have records by name alone.

    >>> task_key(TaskRecord(name="mail.send", queue="mail", version=2))
    'mail.send@2'
    """
    return f"{record.name}@{record.version}"


def list_tasks(found: Iterable[tuple[TaskRecord, Instant]], request: TasksRequest) -> tuple[TaskView, ...]:
    """Return the requested tasks of all that are published, by name and version."""
    versions: dict[tuple[str, int], TaskView] = {}
    for record, seen_at in found:
        known = versions.get((record.name, record.version))
        if known is None or seen_at > known.seen_at:
            versions[record.name, record.version] = TaskView(record, seen_at)
    views = [versions[key] for key in sorted(versions)]
    if not request.every_version:
        names = dict.fromkeys(view.record.name for view in views)
        views = [_current([view for view in views if view.record.name == name]) for name in names]
    wanted = set(request.names)
    return tuple(view for view in views if not wanted or wanted & {view.record.name, *view.record.aliases})


def _current(versions: list[TaskView]) -> TaskView:
    """Return the newest version that was seen within `LIVE_WITHIN` of the last one seen."""
    seen_at = max(view.seen_at for view in versions)
    live = [view.record for view in versions if seen_at - view.seen_at <= LIVE_WITHIN]
    return TaskView(live[-1], seen_at)
