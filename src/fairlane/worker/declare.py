"""Tell the store what the application declares, at the start of a worker; the newest start wins (S54)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.app.clashes import clashes
from fairlane.app.declared import declared_rules
from fairlane.app.fairlane import Fairlane
from fairlane.model.errors import ConfigError
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.policies import PutRequest
from fairlane.store.contract.registry import LIVE_WITHIN, WorkerCard, WorkersRequest

_log: Final = getLogger("fairlane.worker")


async def declare_policies(app: Fairlane, store: Store) -> None:
    """Write the declared values, log what was different before, and say what is not kept yet."""
    _warn(app)
    request = PutRequest(scope=Scope.all(), rules=declared_rules(app))
    for difference in await store.policies.put(request):
        if difference.before is not None:
            subject = str(difference.subject)
            text = "the declared policy of %s has changed"
            about = {"subject": subject, "before": repr(difference.before), "after": repr(difference.after)}
            _log.warning(text, subject, extra={"event": "policy_changed", **about})


async def refuse_others(card: WorkerCard, store: Store) -> None:
    """Raise `ConfigError` if another live application would take this one's jobs; warn of lesser clashes."""
    live = await store.registry.workers(WorkersRequest(scope=Scope.all(), seen_within=LIVE_WITHIN))
    told: set[str] = set()
    for clash in clashes(card, (view.card for view in live)):
        if clash.takes_jobs:
            message = (
                f"{clash.text}, and worker {clash.worker} serves a queue of this one: each would run the "
                f"other's jobs. Give the tasks different names, or each application its own queues or store"
            )
            raise ConfigError(message, key=f"task {clash.task}")
        if clash.text not in told:
            told.add(clash.text)
            about = {"event": "task_clash", "task": clash.task, "application": clash.other}
            text = "%s, and worker %s lives: rename the task of one, or raise its version if they are one"
            _log.warning(text, clash.text, clash.worker, extra={**about, "other_worker": clash.worker})


def _warn(app: Fairlane) -> None:
    for task in app.client.registry:
        wanted = {
            "isolation": task.isolation == "process",
            "breaker": task.breaker is not None,
            "budget": task.budget is not None,
        }
        for option in (name for name, is_wanted in wanted.items() if is_wanted):
            text = "task %s: this version does not keep its %s; its jobs run without"
            about = {"event": "option_ignored", "task": task.name, "option": option}
            _log.warning(text, task.name, option, extra=about)
