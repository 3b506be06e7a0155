"""What an application declares, as a store takes it: a worker writes it there at its start (S54)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from logging import getLogger
from typing import Final

from fairlane.app.config.policy_kinds import nearest
from fairlane.app.declaration import Declaration, Registry, in_force
from fairlane.app.fairlane import Fairlane
from fairlane.app.settings import Settings
from fairlane.model.errors import ConfigError
from fairlane.model.layers import GateRules, Kind, QueueRules, Rules, Subject, TaskRules
from fairlane.model.policy import Gate, Queue

_log: Final = getLogger("fairlane")


def declared_rules(app: Fairlane) -> Mapping[Subject, Rules]:
    """Give the rules of all queues, tasks, gates and tenants that code, file and environment speak of.

    `ConfigError` if a task names a gate that nobody declares: it would limit nothing. Also if its soft
    timeout comes after the hard one, be it the queue's.
    """
    settings, registry = app.settings, app.client.registry
    _tell_unknown_tasks(settings, registry)
    tasks = [in_force(task, settings.tasks) for task in registry]
    for task in tasks:
        task.check_times(settings.queue(task.queue).timeout, f"the timeout of queue {task.queue}")
    gates = _gates(settings, tasks)
    homes = [task.queue for task in tasks]
    return {
        **{
            Subject(Kind.QUEUE, name): _queue_rules(settings.queue(name))
            for name in dict.fromkeys([*settings.queues, *homes])
        },
        **{Subject(Kind.GATE, gate.name): GateRules(gate.limit, gate.rate) for gate in gates.values()},
        **{Subject(Kind.TASK, task.name): _task_rules(task, gates) for task in tasks},
        **{Subject(Kind.TENANT, name): rules for name, rules in settings.tenants.items()},
    }


def _queue_rules(queue: Queue) -> QueueRules:
    return QueueRules(queue.limits, queue.rate, queue.max_waiting, queue.cost)


def _task_rules(task: Declaration, gates: Mapping[str, Gate]) -> TaskRules:
    gate = task.gate.name if isinstance(task.gate, Gate) else task.gate
    if gate is not None and gate not in gates:
        message = f"gate {gate} is declared nowhere, so it would limit nothing{nearest(gate, list(gates))}"
        raise ConfigError(message, key=f"task {task.name}", allowed=", ".join(gates))
    return TaskRules(task.rate, gate)


def _gates(settings: Settings, tasks: Iterable[Declaration]) -> dict[str, Gate]:
    """Collect the gates of settings and of decorators; where both know one, the settings' holds."""
    configured = {gate.name: gate for gate in settings.gates}
    gates: dict[str, Gate] = {}
    for task in tasks:
        gate = task.gate
        if not isinstance(gate, Gate) or gate.name in configured:
            continue
        if gates.setdefault(gate.name, gate) != gate:
            message = f"gate {gate.name} is declared twice, and not alike"
            raise ConfigError(message, key=f"task {task.name}")
    return {**configured, **gates}


def _tell_unknown_tasks(settings: Settings, registry: Registry) -> None:
    known = [task.name for task in registry]
    for name in settings.tasks:
        if name not in known:
            _log.warning(
                "configuration: there is no task %s, so what [tasks] says of it has no effect%s",
                *(name, nearest(name, known)),
                extra={"event": "configuration_unknown_task", "task": name},
            )
