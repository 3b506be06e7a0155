"""The breakers that an application declares, in its settings and with its tasks."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.settings import Settings
from fairlane.app.task.declaration import Declaration
from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import Breaker


def declared_breakers(settings: Settings, tasks: Iterable[Declaration]) -> dict[str, Breaker]:
    """Collect the breakers of settings and decorators by name; the settings win."""
    configured = {one.name: one for one in settings.breakers}
    found: dict[str, Breaker] = {}
    for task in tasks:
        one = task.breaker
        if not isinstance(one, Breaker) or one.name in configured:
            continue
        if found.setdefault(one.name, one) != one:
            message = f"breaker {one.name} is declared twice with different values"
            raise ConfigError(message, key=f"task {task.name}")
    return {**configured, **found}


def find_breaker(name: str, breakers: dict[str, Breaker], where: str) -> Breaker:
    """Return a declared breaker; `ConfigError` names those that there are."""
    found = breakers.get(name)
    if found is None:
        near = did_you_mean(name, list(breakers))
        message = f"breaker {name} is not declared, so nothing would open it{near}"
        raise ConfigError(message, key=where, allowed=", ".join(breakers))
    return found
