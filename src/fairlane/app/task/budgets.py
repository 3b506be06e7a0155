"""The budgets of an application: those of its settings and those of decorators (S59)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.settings import Settings
from fairlane.app.task.declaration import Declaration
from fairlane.model.errors import ConfigError
from fairlane.model.policy.declared import Budget


def declared_budgets(settings: Settings, tasks: Iterable[Declaration]) -> dict[str, Budget]:
    """Collect the budgets of settings and decorators; the settings win."""
    configured = {budget.name: budget for budget in settings.budgets}
    budgets: dict[str, Budget] = {}
    for task in tasks:
        budget = task.budget
        if not isinstance(budget, Budget) or budget.name in configured:
            continue
        if budgets.setdefault(budget.name, budget) != budget:
            message = f"budget {budget.name} is declared twice with different values"
            raise ConfigError(message, key=f"task {task.name}")
    return {**configured, **budgets}


def budget_name(task: Declaration, budgets: Mapping[str, Budget]) -> str | None:
    """Return the name of a task's budget; `ConfigError` if it is not declared, and so would bound nothing."""
    name = task.budget.name if isinstance(task.budget, Budget) else task.budget
    if name is not None and name not in budgets:
        message = (
            f"budget {name} is not declared, so it would bound nothing{did_you_mean(name, list(budgets))}"
        )
        raise ConfigError(message, key=f"task {task.name}", allowed=", ".join(budgets))
    return name


def budget_of(task: Declaration, settings: Settings) -> Budget | None:
    """Return the budget under which a task spends, as its worker knows it; None without one."""
    own = task.budget if isinstance(task.budget, Budget) else None
    name = task.budget if own is None else own.name
    return next((one for one in settings.budgets if one.name == name), own)
