"""All jobs that match, changed: cancel, run now, condemn. Counted first, in passes, audited once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta

from fairlane.app.dead.views import BulkResult
from fairlane.model.access import Role
from fairlane.web.api.bodies import JobFilters, Why
from fairlane.web.api.job_replies import Reply
from fairlane.web.call import WebCall
from fairlane.web.declare import EndpointGroup
from fairlane.web.reading import bad_field

JOB_BULK: Final = EndpointGroup("jobs", "All jobs that match, changed at once.")

Many = Annotated[int, Meta(ge=1, description="Change at most this many.")]
DryRun = Annotated[bool, Meta(description="Only count what matches, and change nothing.")]


class RefusedReply(Reply, frozen=True, kw_only=True):
    """One that was left as it is, and why: a word for programs, and a text."""

    id: str
    reason: str
    text: str


class BulkReply(Reply, frozen=True, kw_only=True):
    """What became of all that matched. `refused` counts those that were left as they are, by reason.

    `left` were not looked at, because of `limit` or a dry run. `matches` is an estimate while there are more
    than 10,000 to look at.
    """

    matches: int
    done: int
    refused: Mapping[str, int]
    examples: Sequence[RefusedReply]
    left: int


class _ManyJobs(JobFilters, frozen=True, kw_only=True):
    limit: Many | None = None
    dry_run: DryRun = False


class AllJobs(_ManyJobs, frozen=True, kw_only=True):
    """Which jobs; name something, `query: "state:waiting"` at least. And why: it is audited."""

    note: str = ""


class CondemnAllJobs(_ManyJobs, frozen=True, kw_only=True):
    """Which jobs, and why."""

    note: Why


@JOB_BULK.post("/jobs/cancel_all", "jobs.cancel_all", least=Role.OPERATOR)
async def cancel_all(call: WebCall, body: AllJobs) -> BulkReply:
    """Cancel all waiting jobs that match, and ask those that run to stop.

    With `dry_run` they are only counted. Jobs that are enqueued meanwhile are left alone. If the connection
    breaks, ask again: what was done is not done twice.
    """
    _named_something(body)
    result = await call.app.jobs.acancel_all(
        body.query, reason=body.note, limit=body.limit, dry_run=body.dry_run, **body.filters
    )
    return bulk_reply(result)


@JOB_BULK.post("/jobs/run_now_all", "jobs.run_now_all", least=Role.OPERATOR)
async def run_now_all(call: WebCall, body: AllJobs) -> BulkReply:
    """Make all delayed jobs that match ready now; see `jobs.cancel_all`."""
    _named_something(body)
    result = await call.app.jobs.arun_now_all(
        body.query, note=body.note, limit=body.limit, dry_run=body.dry_run, **body.filters
    )
    return bulk_reply(result)


@JOB_BULK.post("/jobs/condemn_all", "jobs.condemn_all", least=Role.MANAGER)
async def condemn_all(call: WebCall, body: CondemnAllJobs) -> BulkReply:
    """Move all waiting jobs that match to the dead letters; see `jobs.cancel_all`."""
    _named_something(body)
    result = await call.app.jobs.acondemn_all(
        body.query, reason=body.note, limit=body.limit, dry_run=body.dry_run, **body.filters
    )
    return bulk_reply(result)


def bulk_reply(result: BulkResult) -> BulkReply:
    """Return what became of a bulk action."""
    return BulkReply(
        matches=result.matches,
        done=result.done,
        refused=result.refused,
        examples=[RefusedReply(id=str(one.id), reason=one.reason, text=one.text) for one in result.examples],
        left=result.left,
    )


def bulk_text(reply: BulkReply) -> str:
    """Return in a line what became of a bulk action, for the page that comes next.

    >>> bulk_text(BulkReply(matches=9, done=7, refused={"wrong_state": 2}, examples=(), left=0))
    'Matched: 9, done: 7, left as they are: 2 (wrong state).'
    """
    parts = [f"Matched: {reply.matches:,}", f"done: {reply.done:,}"]
    if reply.refused:
        reasons = ", ".join(reason.replace("_", " ") for reason in reply.refused)
        parts.append(f"left as they are: {sum(reply.refused.values()):,} ({reasons})")
    if reply.left:
        parts.append(f"not looked at: {reply.left:,}")
    return ", ".join(parts) + "."


def _named_something(body: _ManyJobs) -> None:
    """Refuse what would change every job of the caller by omission."""
    if not body.query.strip() and all(value is None for value in body.filters.values()):
        raise bad_field("query", "names no jobs", "say which: a query such as state:waiting, or a filter")
