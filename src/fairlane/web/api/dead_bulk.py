"""All dead letters that match: decided about, run again, deleted. Counted first, in passes, audited once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from fairlane.app.dead.filters import DeadFilters
from fairlane.app.dead.views import BulkResult
from fairlane.model.access import Role
from fairlane.model.review import Review
from fairlane.web.api.dead import REVIEW, DeadFiltersBody
from fairlane.web.api.job_bulk import BulkReply, DryRun, Many, bulk_reply
from fairlane.web.call import WebCall
from fairlane.web.declare import EndpointGroup

DEAD_BULK: Final = EndpointGroup("dead", "All dead letters that match, at once.")


class AllDead(DeadFiltersBody, frozen=True, kw_only=True):
    """Which dead letters: only pending ones unless `review` says otherwise, null for all. And why."""

    review: Review | None = "pending"
    note: str = ""
    limit: Many | None = None
    dry_run: DryRun = False


class ReprocessAllDead(AllDead, frozen=True, kw_only=True):
    """Which dead letters, why, and in which queue their jobs run, if not in their own."""

    to_queue: str | None = None


@DEAD_BULK.post("/dead/acknowledge_all", "dead.acknowledge_all", least=REVIEW)
async def acknowledge_all(call: WebCall, body: AllDead) -> BulkReply:
    """Note that somebody looks after all dead letters that match."""
    return await _do(call, body, call.app.dead.aacknowledge_all)


@DEAD_BULK.post("/dead/reprocess_all", "dead.reprocess_all", least=REVIEW)
async def reprocess_all(call: WebCall, body: ReprocessAllDead) -> BulkReply:
    """Run all dead jobs that match again as new jobs, with their own arguments.

    If the connection breaks, ask again: no letter is run twice.
    """
    return await _do(call, body, call.app.dead.areprocess_all, to_queue=body.to_queue)


@DEAD_BULK.post("/dead/resolve_all", "dead.resolve_all", least=REVIEW)
async def resolve_all(call: WebCall, body: AllDead) -> BulkReply:
    """Decide that all dead letters that match are dealt with."""
    return await _do(call, body, call.app.dead.aresolve_all)


@DEAD_BULK.post("/dead/ignore_all", "dead.ignore_all", least=REVIEW)
async def ignore_all(call: WebCall, body: AllDead) -> BulkReply:
    """Decide that all dead letters that match do not matter."""
    return await _do(call, body, call.app.dead.aignore_all)


@DEAD_BULK.post("/dead/discard_all", "dead.discard_all", least=REVIEW)
async def discard_all(call: WebCall, body: AllDead) -> BulkReply:
    """Decide for good that all dead letters that match must not run again."""
    return await _do(call, body, call.app.dead.adiscard_all)


@DEAD_BULK.post("/dead/delete_all", "dead.delete_all", least=Role.MANAGER)
async def delete_all(call: WebCall, body: AllDead) -> BulkReply:
    """Delete all dead letters that match, with their jobs, for good. Danger: this cannot be undone."""
    return await _do(call, body, call.app.dead.adelete_all)


async def _do(
    call: WebCall, body: AllDead, action: Callable[..., Awaitable[BulkResult]], **more: Any
) -> BulkReply:
    filters: DeadFilters = body.filters
    if body.dry_run:
        matches = sum((await call.app.dead.acount(**filters)).values())
        return BulkReply(matches=matches, done=0, refused={}, examples=(), left=matches)
    return bulk_reply(await action(note=body.note, limit=body.limit, **filters, **more))
