"""Log warnings about accepted jobs: large or sensitive payloads, limits, no tenant, the default store.

Refuses nothing. Logs sizes, paths and counts, never values (S5, S6, S10, S17).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from logging import INFO, WARNING, getLogger
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import msgspec

from fairlane.app.ambient import scope_for
from fairlane.app.enqueue.job_builder import BuiltJob
from fairlane.app.settings import Settings
from fairlane.model.errors import StoreError
from fairlane.model.policy.overrides import EVERY, SubjectKind
from fairlane.model.scope import SYSTEM
from fairlane.store.contract import Store
from fairlane.store.contract.jobs import OverLimit
from fairlane.store.contract.policies import ListRequest

_PATHS_SHOWN: Final = 10
_NOBODY: Final = frozenset({SYSTEM, EVERY})
"""Subjects that a store may know before there is a tenant."""

_log: Final = getLogger("fairlane")


def log_payload_warnings(built: Sequence[BuiltJob], settings: Settings) -> None:
    """Log once per task and batch that payloads are large or look sensitive."""
    to_report = [item for item in built if item.is_large or item.sensitive]
    for task in dict.fromkeys(item.job.task for item in to_report):
        items = [item for item in to_report if item.job.task == task]
        large = [item.size for item in items if item.is_large]
        if large:
            _log.warning(
                "task %s: %d payload(s) over %d bytes, the largest has %d; store large content elsewhere",
                *(task, len(large), settings.payload.warn_over, max(large)),
                extra={"event": "payload_large", "task": task, "count": len(large), "largest": max(large)},
            )
        found = sorted({f"{one.path} ({one.why})" for item in items for one in item.sensitive})
        if found:
            _log.warning(
                "task %s: arguments look sensitive: %s",
                *(task, ", ".join(found[:_PATHS_SHOWN])),
                extra={"event": "payload_sensitive", "task": task, "count": len(found)},
            )


def log_default_store(url: str) -> None:
    """Log which file is the store if none is configured; a warning if the file is new."""
    path = Path(unquote(url.removeprefix("sqlite:///")))
    is_new = not path.exists()
    _log.log(
        WARNING if is_new else INFO,
        "no store is configured; %s %s; set one in Fairlane(...), FAIRLANE_URL or [app] url",
        *("creating" if is_new else "using", path),
        extra={"event": "store_default", "file": str(path)},
    )


def log_over_limit(over: Sequence[OverLimit]) -> None:
    """Log once per tenant and queue, with the highest count, that jobs were stored above a limit (S17)."""
    highest = {(one.tenant, one.queue): one for one in sorted(over, key=lambda one: one.waiting)}
    for one in highest.values():
        _log.warning(
            "job_limit_warning: tenant %s has %d waiting jobs in queue %s, the limit is %d",
            *(one.tenant, one.waiting, one.queue, one.limit),
            extra={"event": "job_limit_warning", **msgspec.structs.asdict(one)},
        )


class MissingTenantWarning:
    """The tasks of one application that were enqueued without a tenant, and whether tenants exist.

    The store is asked at most once per task. If it knew no tenant, the warning follows as soon as this
    application enqueues for one.
    """

    def __init__(self) -> None:
        self.has_others = False
        self.is_due = False
        self._checked: set[str] = set()
        self._warned: set[str] = set()

    def note(self, tasks: AbstractSet[str]) -> None:
        """Record that jobs of these tasks were built without a tenant."""
        if self.has_others:
            self._warn(tasks)
        elif not tasks <= self._checked:
            self._checked |= tasks
            self.is_due = True

    async def check(self, store: Store) -> None:
        """Ask the store whether it knows a tenant, and warn if so."""
        self.is_due = False
        request = ListRequest(scope=scope_for(None), kind=SubjectKind.TENANT, limit=len(_NOBODY) + 1)
        try:
            known = await store.policies.list(request)
        except StoreError:  # the jobs are stored: a failed warning must not fail the enqueue
            return
        if any(view.subject.name not in _NOBODY for view in known):
            self.has_others = True
            self._warn(self._checked)

    def _warn(self, tasks: AbstractSet[str]) -> None:
        for task in sorted(tasks - self._warned):
            self._warned.add(task)
            _log.warning(
                "task %s: no tenant was named, so its job belongs to `%s`, while other tenants exist; name "
                'one with using(tenant=...) or `with app.tenant("...")`, or set tenancy to "required" to '
                "refuse such jobs; declare a task of the application itself with system=True",
                *(task, SYSTEM),
                extra={"event": "tenant_not_named", "task": task},
            )
