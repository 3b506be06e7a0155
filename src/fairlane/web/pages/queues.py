"""Queues: what waits and runs in each, since when, who holds its slots, and whether anybody serves it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from fairlane.app.admin.queue_stats import QueueStats, stats_of
from fairlane.app.admin.shares.views import SharedQueue
from fairlane.app.admin.views import QueueView
from fairlane.app.ambient import scope_for
from fairlane.web.api.policies import shown
from fairlane.web.api.shares import shown_shares
from fairlane.web.call import WebCall
from fairlane.web.page import PageGroup, PageView
from fairlane.web.pages.queue import show_queue
from fairlane.web.pages.queue_lanes import QueueLane, lanes_of

QUEUES: Final = PageGroup("Queues", section="work", icon="queues", key="q")

_LOOKED_AT: Final = 10_000


class QueueRow(msgspec.Struct, frozen=True):
    """A queue in the list; policies, lanes and holders are there for those who see all tenants."""

    stats: QueueStats
    view: QueueView | None = None
    shared: SharedQueue | None = None
    lanes: Sequence[QueueLane] = ()

    @property
    def is_unserved(self) -> bool:
        """Whether jobs wait that no live worker serves."""
        return self.view is not None and not self.lanes and bool(self.stats.ready + self.stats.delayed)

    @property
    def oldest_at(self) -> datetime | None:
        """When the oldest ready job was enqueued."""
        return self.stats.oldest_at


@QUEUES.page("/queues", "queues.list")
async def list_queues(call: WebCall) -> PageView:
    """Show all queues, those that need somebody first; to a caller of one tenant those with its jobs."""
    if call.principal.tenant is not None:
        own = await stats_of(call.app.client.store, scope_for(None), None, (), _LOOKED_AT)
        rows = [QueueRow(stats) for stats in own.values()]
    else:
        views = {one.name: shown(one) for one in await call.app.queues.alist()}
        stats = await call.app.queues.astats(most=_LOOKED_AT)
        shares = shown_shares(await call.app.tenants.ashares(limit=1))
        shared = {one.queue: one for one in shares.queues}
        workers = await call.app.workers.alist()
        rows = [
            QueueRow(stats[name], view, shared.get(name), lanes_of(name, workers))
            for name, view in views.items()
            if name in stats
        ]
    rows.sort(key=lambda row: (not row.is_unserved, -_slowed(row), -row.stats.ready, row.stats.name))
    values: dict[str, Any] = {
        "rows": rows,
        "sees_all": call.principal.tenant is None,
        "sees_dead": call.may("dead.groups"),
        "unserved": [row for row in rows if row.is_unserved],
        "held": [row for row in rows if row.view is not None and (row.view.paused or row.view.closed)],
        "contended": [row for row in rows if _slowed(row)],
        "waiting": sum(row.stats.ready + row.stats.delayed for row in rows),
    }
    return PageView("queues/list.html", values)


QUEUES.page("/queues/{queue}", "queues.show")(show_queue)


def _slowed(row: QueueRow) -> int:
    return 0 if row.shared is None else row.shared.sloweds
