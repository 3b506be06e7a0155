"""Write the declared policies and schedules to the store when a worker starts; the newest wins (S54)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.app.fairlane import Fairlane
from fairlane.app.schedules.declaring import declare_schedules
from fairlane.app.task.conflicts import task_conflicts
from fairlane.app.task.rules import declared_rules
from fairlane.model.errors import ConfigError
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.registry import LIVE_WITHIN, WorkerRecord, WorkersRequest

_log: Final = getLogger("fairlane.worker")


async def declare_policies(app: Fairlane, store: Store) -> None:
    """Write the declared values and schedules, and log which of them were different before."""
    request = PutRequest(scope=Scope.all(), rules=declared_rules(app))
    for difference in await store.policies.put(request):
        if difference.before is not None:
            subject = str(difference.subject)
            text = "the declared policy of %s has changed"
            about = {"subject": subject, "before": repr(difference.before), "after": repr(difference.after)}
            _log.warning(text, subject, extra={"event": "policy_changed", **about})
    await declare_schedules(app.client, store)


async def refuse_conflicting_apps(record: WorkerRecord, store: Store) -> None:
    """Raise `ConfigError` if another live application would take this one's jobs; warn of other conflicts."""
    live = await store.registry.workers(WorkersRequest(scope=Scope.all(), seen_within=LIVE_WITHIN))
    logged: set[str] = set()
    for conflict in task_conflicts(record, (view.record for view in live)):
        if conflict.takes_jobs:
            message = (
                f"{conflict.text}, and worker {conflict.worker} serves a queue of this one: each would run "
                f"the other's jobs. Give the tasks different names, or each application its own queues or "
                f"store"
            )
            raise ConfigError(message, key=f"task {conflict.task}")
        if conflict.text not in logged:
            logged.add(conflict.text)
            about = {"event": "task_conflict", "task": conflict.task, "application": conflict.other}
            text = "%s, and worker %s lives: rename the task of one, or raise its version if they are one"
            _log.warning(
                text, conflict.text, conflict.worker, extra={**about, "other_worker": conflict.worker}
            )
