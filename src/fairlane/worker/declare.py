"""Tell the store what the application declares, at the start of a worker; the newest start wins (S54)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

from fairlane.app.declared import declared_rules
from fairlane.app.fairlane import Fairlane
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.policies import PutRequest

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
