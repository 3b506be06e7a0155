"""The budget under which a task spends, as its worker knows it (S59)."""

from __future__ import annotations

from fairlane.app.settings import Settings
from fairlane.app.task.declaration import Declaration
from fairlane.model.policy.declared import Budget


def budget_of(task: Declaration, settings: Settings) -> Budget | None:
    """Return the budget under which a task spends; None without one."""
    own = task.budget if isinstance(task.budget, Budget) else None
    name = task.budget if own is None else own.name
    return next((one for one in settings.budgets if one.name == name), own)
