"""Tenants: which of them slows whom, who waits since when, and which are paused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from fairlane.app.admin.explain import Waiting
from fairlane.app.admin.shares.views import SharedQueue, ShareFilter, ShareOrder
from fairlane.model.errors import JobNotFound
from fairlane.web.api.shares import shown_shares
from fairlane.web.api.tenants import labels_in
from fairlane.web.call import WebCall
from fairlane.web.declare import Body
from fairlane.web.page import PageGroup, PageView
from fairlane.web.pages.tenant import show_tenant, tenant_view

TENANTS: Final = PageGroup("Tenants", section="work", icon="tenants", key="t")

TABS: Final[Mapping[ShareFilter, str]] = {
    "all": "All",
    "over": "Above share",
    "slowed": "Slowed",
    "waiting": "Waiting",
    "running": "Running",
    "held": "Paused or closed",
    "dead": "Dead letters",
    "idle": "Idle",
}

COLUMNS: Final[Mapping[ShareOrder, str]] = {
    "impact": "Impact",
    "waits": "Waits longest",
    "waiting": "Most waiting",
    "running": "Most slots",
    "dead": "Most dead",
    "name": "Name",
}

_PAGE: Final = 50
_CONTENDED: Final = 6
_EXPLAINED: Final = 3


class TenantsQuery(Body, frozen=True, kw_only=True):
    """What the URL of the list says: which tenants, in which order, and where the page begins."""

    only: ShareFilter = "all"
    sort: ShareOrder = "impact"
    name: str = ""
    label: Annotated[str, msgspec.Meta(pattern="^([^=]+=.*)?$")] = ""
    cursor: str | None = None


@TENANTS.page("/tenants", "tenants.list")
async def list_tenants(call: WebCall, query: TenantsQuery) -> PageView:
    """Show who slows whom, then all tenants; a caller of one tenant sees that one alone."""
    if call.principal.tenant is not None:
        return await tenant_view(call, call.principal.tenant)
    shares = shown_shares(
        await call.app.tenants.ashares(
            order=query.sort,
            only=query.only,
            name=query.name.strip(),
            labels=labels_in((query.label,) if query.label else ()),
            limit=_PAGE,
            cursor=query.cursor or None,
        )
    )
    contended = [one for one in shares.queues if one.slowed]
    values: dict[str, Any] = {
        "query": query,
        "tabs": TABS,
        "columns": COLUMNS,
        "shares": shares,
        "contended": contended,
        "shown": (contended or shares.queues)[:_CONTENDED],
        "why": await explained(call, first_waiting(contended[:_CONTENDED])),
        "largest": max((max(one.running, one.fair) for one in shares.items), default=0),
        "link": _linker(query),
    }
    return PageView("tenants/list.html", values)


TENANTS.page("/tenants/{tenant}", "tenants.show")(show_tenant)


def first_waiting(queues: Iterable[SharedQueue]) -> list[UUID]:
    """Return the jobs that those wait for who are slowed for longest, in each queue."""
    return [one.first_id for queue in queues for one in queue.slowed[:_EXPLAINED] if one.first_id is not None]


async def explained(call: WebCall, ids: Iterable[UUID]) -> Mapping[UUID, Waiting]:
    """Return why these jobs wait; those that are gone by now are left out."""
    found: dict[UUID, Waiting] = {}
    for id in ids:
        with suppress(JobNotFound):
            found[id] = await call.app.jobs.aexplain(id)
    return found


def _linker(query: TenantsQuery) -> Callable[..., str]:
    """Return a function that gives the URL of this list with other values."""
    defaults = msgspec.structs.asdict(TenantsQuery())
    here = msgspec.structs.asdict(query)

    def link(**other: Any) -> str:
        values = here | {"cursor": None} | other
        given = {name: value for name, value in values.items() if value and value != defaults[name]}
        return "/tenants" + (f"?{urlencode(given)}" if given else "")

    return link
