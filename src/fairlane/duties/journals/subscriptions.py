"""Find the published tasks that subscribe to events (S77). Decides nothing."""

from __future__ import annotations

from typing import NamedTuple

from fairlane.app.task.subscriber import event_parameter
from fairlane.model.journal.subscribing import Subscription
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.registry import TaskRecord, TasksRequest, TaskView


class SubscribedTask(NamedTuple):
    """A published task, and what it subscribes to; a task that subscribes to nothing is one, too."""

    record: TaskRecord
    subscription: Subscription

    @property
    def name(self) -> str:
        """The name of the task."""
        return self.record.name


async def published_tasks(store: Store) -> list[SubscribedTask]:
    """Return every published task, in its current version. One without an argument subscribes to nothing."""
    views = await store.registry.tasks(TasksRequest(scope=Scope.all()))
    return [SubscribedTask(view.record, _subscription(view)) for view in views]


def _subscription(view: TaskView) -> Subscription:
    record = view.record
    kinds = record.events if record.events and event_parameter(record) is not None else ()
    return Subscription(record.name, frozenset(kinds), view.seen_at)
