"""The options of one enqueue, as given: kept, laid over each other, judged elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.job import Job
from fairlane.model.instants import Duration
from fairlane.model.job import OnDuplicate

_OF_ONE_JOB: Final = frozenset({"tenant", "idempotency_key", "dedup_key", "correlation_id", "parent"})
"""What is given to one job at a time; everything else is usually said once for many."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What `using()` was told. What is UNSET was never given; only `timeout` may be None, for no timeout.

    Options of the same `manner` are alike in all but what is given to one job at a time, so that whoever has
    judged the rest of one has judged that of all. It is compared by identity.
    """

    tenant: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    run_at: datetime | UnsetType = UNSET
    delay: Duration | UnsetType = UNSET
    expires_at: datetime | UnsetType = UNSET
    expires_in: Duration | UnsetType = UNSET
    idempotency_key: str | UnsetType = UNSET
    on_duplicate: OnDuplicate | UnsetType = UNSET
    dedup_key: str | UnsetType = UNSET
    correlation_id: str | UnsetType = UNSET
    parent: UUID | Job[Any] | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    timeout: Duration | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    metadata: Mapping[str, Any] | UnsetType = UNSET
    connection: Any = UNSET
    manner: object = None

    @property
    def has_ties(self) -> bool:
        """Whether anything is given that ties a job to others."""
        return not (self.idempotency_key is self.dedup_key is self.correlation_id is self.parent is UNSET)

    def under(self, **said: Any) -> Options:
        """Give these options with others laid over them; None was not said, except for `timeout`.

        Tags and metadata are copied, so that what the caller does to its own afterwards changes nothing here.

        >>> first = Options(tenant="globex", queue="bulk").under(tenant="acme", delay=5, tags=["a", "b"])
        >>> first.tenant, first.delay, first.queue, first.tags, first.timeout is UNSET
        ('acme', 5, 'bulk', ('a', 'b'), True)
        """
        given = {name: value for name, value in said.items() if value is not None and value is not UNSET}
        if said.get("timeout", UNSET) is None:
            given["timeout"] = None
        if not given:
            return self
        if not given.keys() <= _OF_ONE_JOB:
            _copy(given)
            given["manner"] = object()
        return msgspec.structs.replace(self, **given)


NO_OPTIONS: Final = Options()


def _copy(given: dict[str, Any]) -> None:
    tags: object = given.get("tags")
    # One text is an iterable of texts, and never meant so: the form says so.
    if isinstance(tags, Iterable) and not isinstance(tags, str | bytes):
        given["tags"] = tuple(cast("Iterable[object]", tags))
    metadata: object = given.get("metadata")
    if isinstance(metadata, Mapping):
        given["metadata"] = dict(cast("Mapping[object, object]", metadata))
