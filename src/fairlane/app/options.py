"""The options of one enqueue, as given: kept, laid over each other, judged elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.job import Job
from fairlane.model.instants import Duration
from fairlane.model.job import OnDuplicate


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What `using()` was told. What is UNSET was never given; only `timeout` may be None, for no timeout.

    >>> first = Options(tenant="acme", delay=5).over(Options(tenant="globex", queue="bulk"))
    >>> first.tenant, first.delay, first.queue, first.timeout is UNSET
    ('acme', 5, 'bulk', True)
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

    def over(self, other: Options) -> Options:
        """Lay these options over others: what is given here wins, the rest shows through."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}
        return msgspec.structs.replace(other, **given) if given else other


NO_OPTIONS = Options()


def given(**values: Any) -> Options:
    """Keep the values that are not None.

    Tags and metadata are copied, so that what the caller does to its own afterwards changes nothing here.

    >>> given(tenant="acme", queue=None, tags=["a", "b"]).tags
    ('a', 'b')
    """
    kept = {name: value for name, value in values.items() if value is not None}
    tags: object = kept.get("tags")
    # One text is an iterable of texts, and never meant so: the form says so.
    if isinstance(tags, Iterable) and not isinstance(tags, str | bytes):
        kept["tags"] = tuple(cast("Iterable[object]", tags))
    metadata: object = kept.get("metadata")
    if isinstance(metadata, Mapping):
        kept["metadata"] = dict(cast("Mapping[object, object]", metadata))
    return Options(**kept)
