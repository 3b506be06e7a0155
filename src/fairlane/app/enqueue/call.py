"""A call of a task that is not enqueued yet: task, options, arguments. Holds them and checks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Generic, TypeVar, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from fairlane.app.job import Job
from fairlane.app.task.declaration import Declaration
from fairlane.model.instants import Duration
from fairlane.model.job import OnDuplicate

R_co = TypeVar("R_co", covariant=True)

_OF_ONE_JOB: Final = frozenset(
    {"tenant", "idempotency_key", "dedup_key", "correlation_id", "created_by", "parent"}
)
"""Options that usually differ from job to job; the others are usually the same for a whole batch."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options given to `using()`. UNSET means not given; only `timeout` may be None, for no timeout.

    Options with the same `batch_key` (compared by identity) differ only in the options of one job. So a batch
    checks the rest once.
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
    created_by: str | UnsetType = UNSET
    parent: UUID | Job[Any] | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    timeout: Duration | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    metadata: Mapping[str, Any] | UnsetType = UNSET
    connection: Any = UNSET
    batch_key: object = None

    @property
    def has_links(self) -> bool:
        """Whether any option links the job to others: keys, correlation id, creator, parent."""
        return not (
            self.idempotency_key
            is self.dedup_key
            is self.correlation_id
            is self.created_by
            is self.parent
            is UNSET
        )

    def with_options(self, **options: Any) -> Options:
        """Return a copy with these options set; None means not given, except for `timeout`.

        Tags and metadata are copied, so that the caller may change its own afterwards.

        >>> both = Options(tenant="globex", queue="bulk").with_options(tenant="acme", delay=5, tags=["a"])
        >>> both.tenant, both.delay, both.queue, both.tags, both.timeout is UNSET
        ('acme', 5, 'bulk', ('a',), True)
        """
        given = {name: value for name, value in options.items() if value is not None and value is not UNSET}
        if options.get("timeout", UNSET) is None:
            given["timeout"] = None
        if not given:
            return self
        if not given.keys() <= _OF_ONE_JOB:
            _copy(given)
            given["batch_key"] = object()
        return msgspec.structs.replace(self, **given)


NO_OPTIONS: Final = Options()


class Call(Generic[R_co]):
    """The result of `Task.bind`: a task with options and arguments, ready for `enqueue_many` or an outbox."""

    __slots__ = ("arguments", "options", "task")

    def __init__(self, task: Declaration, options: Options, arguments: dict[str, Any]) -> None:
        self.task = task
        self.options = options
        self.arguments = arguments

    def __repr__(self) -> str:
        """Show the task and its parameter names. Values may be secret (S6)."""
        return f"<Call of {self.task.name}({', '.join(self.arguments)})>"


def _copy(given: dict[str, Any]) -> None:
    tags: object = given.get("tags")
    # A str is iterable, too, but never meant as a list of letters: the check of tags refuses it.
    if isinstance(tags, Iterable) and not isinstance(tags, str | bytes):
        given["tags"] = tuple(cast("Iterable[object]", tags))
    metadata: object = given.get("metadata")
    if isinstance(metadata, Mapping):
        given["metadata"] = dict(cast("Mapping[object, object]", metadata))
