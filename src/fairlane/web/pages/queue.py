"""One queue: its jobs by state, its rates, who holds its slots and who waits, its worst tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from fairlane.app.admin.failures import report_failures
from fairlane.app.admin.queue_stats import QueueStats, stats_of
from fairlane.app.admin.rates import RateView
from fairlane.app.admin.shares.page import shares_in
from fairlane.app.admin.validation import begin_of
from fairlane.app.admin.views import QueueView
from fairlane.app.ambient import scope_for
from fairlane.model.lifecycle.states import State
from fairlane.model.names import name_hint
from fairlane.web.api.policies import shown
from fairlane.web.api.shares import shown_shares
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.page import PageView
from fairlane.web.pages.jobs import rows_of
from fairlane.web.pages.queue_lanes import lanes_of
from fairlane.web.personal import RANGES, personal_of
from fairlane.web.problem import NOT_FOUND, HttpProblem

StateTab: TypeAlias = Literal["ready", "delayed", "running", "succeeded", "dead", "cancelled"]

TABS: Final[Mapping[StateTab, State]] = {
    "ready": State.READY,
    "delayed": State.DELAYED,
    "running": State.RUNNING,
    "succeeded": State.SUCCEEDED,
    "dead": State.DEAD,
    "cancelled": State.CANCELLED,
}

_PAGE: Final = 50
_TENANTS: Final = 20
_RATES: Final = 20
_LOOKED_AT: Final = 10_000
_FAILURES_READ: Final = 500


class QueueQuery(Body, frozen=True, kw_only=True):
    """What the URL of a queue says: which of its jobs."""

    state: StateTab = "ready"


async def show_queue(call: WebCall, queue: str, query: QueueQuery) -> PageView:
    """Show one queue; to a caller of one tenant its own jobs there, and nothing that all share."""
    scope, store = scope_for(None), call.app.client.store
    stats = await _stats(call, queue)
    sees_all = call.principal.tenant is None
    view = shown(await call.app.queues.aget(queue)) if sees_all else None
    if not _is_there(call, stats, view):
        raise HttpProblem(404, "not_found", NOT_FOUND)
    page = await call.app.jobs.afind(queue=queue, state=TABS[query.state], limit=_PAGE)
    range_ = personal_of(call.request.cookies).range
    since = await begin_of(store, RANGES[range_])
    failures = await report_failures(store, scope, since, None, _FAILURES_READ, queue=queue)
    values: dict[str, Any] = {
        "name": queue,
        "query": query,
        "tabs": {tab: getattr(stats, tab) for tab in TABS},
        "stats": stats,
        "view": view,
        "rows": await rows_of(call, page.items),
        "is_more": page.cursor is not None,
        "sees_all": sees_all,
        "sees_dead": call.may("dead.groups"),
        "range": range_,
        "failures": failures,
        **(await _shared(call, queue) if sees_all else {}),
    }
    return PageView("queues/queue.html", values)


async def _stats(call: WebCall, queue: str) -> QueueStats:
    """Return the statistics of a queue, of what the caller may see in it."""
    if name_hint(queue) is not None:
        raise HttpProblem(404, "not_found", NOT_FOUND)
    found = await stats_of(call.app.client.store, scope_for(None), queue, (queue,), _LOOKED_AT)
    return found[queue]


def _is_there(call: WebCall, stats: QueueStats, view: QueueView | None) -> bool:
    """Whether the caller has jobs there; for those who see all, also whether anybody declared it."""
    if any(getattr(stats, tab) for tab in TABS):
        return True
    if view is None:
        return False
    is_known = view.declared or view.override or view.paused or view.closed
    return bool(is_known) or view.name in call.app.settings.queues


async def _shared(call: WebCall, queue: str) -> Mapping[str, Any]:
    """Return what all tenants share: their shares, the rates, the lanes that serve the queue."""
    shares = shown_shares(await shares_in(call.app.client.store, queue, _TENANTS))
    rates = sorted(await call.app.queues.arates(queue), key=_urgency)
    return {
        "shares": shares,
        "shared": shares.queues[0] if shares.queues else None,
        "largest": max((max(one.running, one.fair) for one in shares.items), default=0),
        "rates": rates[:_RATES],
        "all_rates": len(rates),
        "lanes": lanes_of(queue, await call.app.workers.alist()),
    }


def _urgency(rate: RateView) -> tuple[bool, bool, int, str]:
    """Put the queue's own rate first, then those that allow no start and hold back most."""
    return (rate.kind != "queue", rate.allowed > 0, -(rate.ready or 0), rate.name)
