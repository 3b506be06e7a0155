"""Fields that many requests have, with what the documentation says of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

from msgspec import Meta

from fairlane.app.admin.validation import Filters
from fairlane.model.lifecycle.states import State
from fairlane.web.declare import Body

Moment = Annotated[datetime, Meta(tz=True)]
"""An instant with its offset, as in `2026-11-19T08:00:00Z`."""

Limit = Annotated[int, Meta(ge=1, le=1_000, description="How many to return at most.")]
Cursor = Annotated[str | None, Meta(description="That of the page before, for the next one.")]
Why = Annotated[
    str, Meta(min_length=1, max_length=2_000, pattern=r"\S", description="Why; it is audited. Required.")
]
Query = Annotated[
    str, Meta(description="The query language: `state:dead task:mail.* -tag:vip since:2h`. Empty: all.")
]


class Reasoned(Body, frozen=True, kw_only=True):
    """A change that needs a reason."""

    note: Why


class PlainFilters(Body, frozen=True, kw_only=True):
    """Which jobs: every filter must hold. Times are of the enqueue: [since, until)."""

    tenant: str | None = None
    queue: str | None = None
    task: str | None = None
    state: Sequence[State] | None = None
    correlation_id: str | None = None
    created_by: str | None = None
    tag: str | None = None
    parent: UUID | None = None
    since: Moment | None = None
    until: Moment | None = None

    @property
    def filters(self) -> Filters:
        """The filters beside a query, as `app.jobs` takes them."""
        return {
            "tenant": self.tenant,
            "queue": self.queue,
            "task": self.task,
            "state": self.state,
            "correlation_id": self.correlation_id,
            "created_by": self.created_by,
            "tag": self.tag,
            "parent": self.parent,
            "since": self.since,
            "until": self.until,
        }


class JobFilters(PlainFilters, frozen=True, kw_only=True):
    """Which jobs: the query and every filter must hold. Times are of the enqueue: [since, until)."""

    query: Query = ""
