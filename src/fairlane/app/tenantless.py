"""Warn, once a task, that its enqueues name no tenant while other tenants exist (S10). Refuses nothing."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from logging import getLogger
from typing import Final

from fairlane.app.ambient import scope_for
from fairlane.model.errors import StoreError
from fairlane.model.layers import EVERY, Kind
from fairlane.model.scope import SYSTEM
from fairlane.store.contract import Store
from fairlane.store.contract.policies import ListRequest

_NOBODY: Final = frozenset({SYSTEM, EVERY})
"""What a store may know of before there is a tenant."""

_log: Final = getLogger("fairlane")


class Tenantless:
    """The tasks of one application that were enqueued for nobody, and whether anybody is there.

    A store is asked at most once a task. Where it knew of no other tenant, the task is told of when this
    application enqueues for one.
    """

    def __init__(self) -> None:
        self.has_others = False
        self.is_due = False
        self._asked: set[str] = set()
        self._told: set[str] = set()

    def note(self, tasks: AbstractSet[str]) -> None:
        """Hear that jobs of these tasks were made without a tenant."""
        if self.has_others:
            self._tell(tasks)
        elif not tasks <= self._asked:
            self._asked |= tasks
            self.is_due = True

    async def look(self, store: Store) -> None:
        """Ask the store, after an enqueue that was noted, whether it knows of any other tenant."""
        self.is_due = False
        request = ListRequest(scope=scope_for(None), kind=Kind.TENANT, limit=len(_NOBODY) + 1)
        try:
            known = await store.policies.list(request)
        except StoreError:  # the jobs are stored, and a remark is worth no error
            return
        if any(view.subject.name not in _NOBODY for view in known):
            self.has_others = True
            self._tell(self._asked)

    def _tell(self, tasks: AbstractSet[str]) -> None:
        for task in sorted(tasks - self._told):
            self._told.add(task)
            _log.warning(
                "task %s: no tenant was named, so its job belongs to `%s`, while other tenants exist; name "
                'one with using(tenant=...) or `with app.tenant("...")`, or set tenancy to "required" so '
                "that none is forgotten; a task of the application itself is declared with system=True",
                *(task, SYSTEM),
                extra={"event": "tenant_not_named", "task": task},
            )
