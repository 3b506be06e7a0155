"""Which dead letters are about a task whose breaker is not closed (S58): run again now, their jobs wait.

Breakers belong to all tenants, so inside a tenant nothing is said of them (S9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairlane.app.admin.breakers import Breakers, BreakerView
from fairlane.app.ambient import scope_for
from fairlane.app.client import Client
from fairlane.app.dead.views import DeadGroup
from fairlane.model.policy.overrides import Subject, SubjectKind, TaskRules
from fairlane.store.contract.policies import ReadRequest


async def with_breakers(client: Client, groups: Sequence[DeadGroup]) -> Sequence[DeadGroup]:
    """Return the groups with the breaker of their task, while that is not closed for one of their tenants."""
    scope = scope_for(None)
    if scope.tenant is not None or not groups:
        return groups
    opened = [one for one in await Breakers(client).alist() if one.state != "closed"]
    if not opened:
        return groups
    subjects = tuple({Subject(SubjectKind.TASK, group.task) for group in groups})
    views = await client.store.policies.read(ReadRequest(scope=scope, subjects=subjects))
    rules = {subject.name: view.effective for subject, view in views.items()}
    breakers = {task: one.breaker for task, one in rules.items() if isinstance(one, TaskRules)}
    return [replace(group, breaker=_holding(group, breakers, opened)) for group in groups]


def _holding(
    group: DeadGroup, breakers: Mapping[str, str | None], opened: Sequence[BreakerView]
) -> BreakerView | None:
    """Return the breaker that lets fewest pass: an open one before one that recovers, all tenants' first."""
    name, tenants = breakers.get(group.task), {None, *group.tenants}
    found = [one for one in opened if one.name == name and one.tenant in tenants]
    return min(found, key=lambda one: (one.state != "open", one.tenant is not None), default=None)
