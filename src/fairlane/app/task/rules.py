"""The declared rules of an application, as a worker writes them to the store when it starts (S54)."""

from __future__ import annotations

from collections.abc import Mapping
from logging import getLogger
from typing import Final

import msgspec

from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.fairlane import Fairlane
from fairlane.app.guards.declared import breaker_rules
from fairlane.app.settings import Settings
from fairlane.app.task.declaration import TaskRegistry, with_task_settings
from fairlane.app.task.named_rules import collected, named_by
from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import Queue, budget_rules
from fairlane.model.policy.overrides import (
    GateRules,
    QueueRules,
    Rules,
    Subject,
    SubjectKind,
    TaskRules,
)

_log: Final = getLogger("fairlane")


def declared_rules(app: Fairlane) -> Mapping[Subject, Rules]:
    """Return the rules of all queues, tasks, gates, budgets and tenants of code, file and environment.

    `ConfigError` if a task names an undeclared gate, breaker or budget, which would limit nothing, if its
    soft timeout is above its timeout or its queue's, if it would be stuck before its timeout, or if it
    bounds memory that it shares with others.
    """
    settings, registry = app.settings, app.client.registry
    _log_unknown_tasks(settings, registry)
    tasks = [with_task_settings(task, settings.tasks) for task in registry]
    for task in tasks:
        task.check_isolation()
        queue = settings.queue(task.queue)
        stuck_after = queue.stuck_after if task.stuck_after is None else task.stuck_after
        effective = msgspec.structs.replace(task, stuck_after=stuck_after)
        effective.check_times(queue.timeout, f"the timeout of queue {task.queue}")
        if task.category is not None and task.category not in settings.categories:
            message = f"category {task.category} is not one of payload.categories"
            raise ConfigError(message, key=f"task {task.name}", allowed=", ".join(settings.categories))
    gates = collected("gate", settings.gates, tasks)
    breakers = collected("breaker", settings.breakers, tasks)
    budgets = collected("budget", settings.budgets, tasks)
    homes = [task.queue for task in tasks]
    return {
        **{
            Subject(SubjectKind.QUEUE, name): _queue_rules(settings.queue(name))
            for name in dict.fromkeys([*settings.queues, *homes])
        },
        **{Subject(SubjectKind.GATE, gate.name): GateRules(gate.limit, gate.rate) for gate in gates.values()},
        **{Subject(SubjectKind.BREAKER, name): breaker_rules(one) for name, one in breakers.items()},
        **{Subject(SubjectKind.BUDGET, name): budget_rules(budget) for name, budget in budgets.items()},
        **{
            Subject(SubjectKind.TASK, task.name): TaskRules(
                rate=task.rate,
                gate=named_by(task, "gate", gates),
                budget=named_by(task, "budget", budgets),
                breaker=named_by(task, "breaker", breakers),
            )
            for task in tasks
        },
        **{Subject(SubjectKind.TENANT, name): rules for name, rules in settings.tenants.items()},
    }


def _queue_rules(queue: Queue) -> QueueRules:
    return QueueRules(queue.limits, queue.rate, queue.max_waiting, queue.cost)


def _log_unknown_tasks(settings: Settings, registry: TaskRegistry) -> None:
    known = [task.name for task in registry]
    for name in settings.tasks:
        if name not in known:
            _log.warning(
                "configuration: there is no task %s, so its values in [tasks] have no effect%s",
                *(name, did_you_mean(name, known)),
                extra={"event": "configuration_unknown_task", "task": name},
            )
