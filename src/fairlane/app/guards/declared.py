"""The breakers that an application declares, in its settings and with its tasks."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.app.settings import Settings
from fairlane.app.task.declaration import Declaration
from fairlane.app.task.named_rules import collected, refuse_undeclared
from fairlane.model.instants import to_micros
from fairlane.model.policy.declared import Breaker
from fairlane.model.policy.overrides import BreakerRules


def declared_breakers(settings: Settings, tasks: Iterable[Declaration]) -> dict[str, Breaker]:
    """Collect the breakers of settings and decorators by name; the settings win."""
    return collected("breaker", settings.breakers, tasks)


def find_breaker(name: str, breakers: dict[str, Breaker], where: str) -> Breaker:
    """Return a declared breaker; `ConfigError` names those that there are."""
    refuse_undeclared("breaker", name, breakers, where)
    return breakers[name]


def breaker_rules(one: Breaker) -> BreakerRules:
    """Return the rules of a breaker as stores enforce them."""
    window, open_for = to_micros(one.window), to_micros(one.open_for)
    return BreakerRules(one.failures, window, open_for, one.per, one.on_open, one.ramp)
