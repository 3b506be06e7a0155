"""Which versions of a task workers have published, and which one speaks for it (S33). Asks no store."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.model.instants import Instant
from fairlane.store.contract.registry import LIVE_WITHIN, TaskCard, TasksRequest, TaskView


def key_of(card: TaskCard) -> str:
    """Name the place of a card: each version has its own, so that an old worker hides no newer one.

    No task has an @ in its name (S3). Stores that an earlier Fairlane has written have cards by name alone.

    >>> key_of(TaskCard(name="mail.send", queue="mail", version=2))
    'mail.send@2'
    """
    return f"{card.name}@{card.version}"


def listed(found: Iterable[tuple[TaskCard, Instant]], request: TasksRequest) -> tuple[TaskView, ...]:
    """Answer a request from all that is published: by name and version, those that were asked for."""
    versions: dict[tuple[str, int], TaskView] = {}
    for card, seen_at in found:
        known = versions.get((card.name, card.version))
        if known is None or seen_at > known.seen_at:
            versions[card.name, card.version] = TaskView(card, seen_at)
    views = [versions[key] for key in sorted(versions)]
    if not request.every_version:
        names = dict.fromkeys(view.card.name for view in views)
        views = [_speaker([view for view in views if view.card.name == name]) for name in names]
    wanted = set(request.names)
    return tuple(view for view in views if not wanted or wanted & {view.card.name, *view.card.aliases})


def _speaker(versions: list[TaskView]) -> TaskView:
    """Choose the newest version that still lives, judged by the last sign of life of any."""
    seen_at = max(view.seen_at for view in versions)
    live = [view.card for view in versions if seen_at - view.seen_at <= LIVE_WITHIN]
    return TaskView(live[-1], seen_at)
