"""Categories of payloads: what arguments the jobs of a task must have besides its parameters (S5).

A category is configured in `payload.categories`. Knows no store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane.app.did_you_mean import did_you_mean
from fairlane.app.enqueue.call import Call
from fairlane.app.enqueue.checks import ProblemList
from fairlane.app.settings import Settings
from fairlane.app.task.declaration import Declaration


def needed_arguments(problems: ProblemList, task: Declaration, settings: Settings) -> Sequence[str]:
    """Return the arguments that the task's category requires; a problem if there is no such category."""
    if task.category is None:
        return ()
    needed = settings.categories.get(task.category)
    if needed is None:
        known = list(settings.categories)
        message = f"{task.category} of task {task.name} is not declared{did_you_mean(task.category, known)}"
        hint = f"add it to payload.categories, which has: {', '.join(known) or 'none'}"
        problems.add("category", message, hint, "category")
        return ()
    return needed


def check_needed(problems: ProblemList, call: Call[Any], needed: Sequence[str]) -> None:
    """Report each required argument that is missing or None, unless another check has reported it."""
    reported = {problem.field for problem in problems.found if problem.index == problems.index}
    for name in needed:
        field = f"arguments.{name}"
        if call.arguments.get(name) is None and field not in reported:
            problems.add(field, "is missing", f"category {call.task.category} needs it", "category")
