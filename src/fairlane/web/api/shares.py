"""`/shares`: tenants side by side. Who holds how many slots, what is fair, who slows whom.

What others hold is theirs: for a caller of one tenant none of it is there (S9).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

from msgspec import Meta

from fairlane.app.admin.shares.views import ShareFilter, ShareOrder, TenantShares
from fairlane.web.api.policies import hold_shown
from fairlane.web.api.tenants import Label, labels_in
from fairlane.web.call import WebCall
from fairlane.web.declare import Body, EndpointGroup

SHARES: Final = EndpointGroup(
    "shares", "Tenants side by side: slots held and fair shares, who slows whom, who waits since when."
)


class SharesQuery(Body, frozen=True, kw_only=True):
    """Which tenants, in which order: those with this in their name, and all these labels."""

    order: ShareOrder = "impact"
    only: ShareFilter = "all"
    name: Annotated[str, Meta(max_length=200)] = ""
    label: tuple[Label, ...] = ()
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 50
    cursor: str | None = None


@SHARES.get("/shares", "shares.find", tenants="all")
async def find(call: WebCall, query: SharesQuery) -> TenantShares:
    """Return one page of tenants with what they hold and wait for, and the queues that they share.

    `impact` begins with those who slow others, then those who are slowed. Numbers are from counters, at one
    instant for each counter.
    """
    return shown_shares(
        await call.app.tenants.ashares(
            order=query.order,
            only=query.only,
            name=query.name,
            labels=labels_in(query.label),
            limit=query.limit,
            cursor=query.cursor or None,
        )
    )


@SHARES.get("/shares/{tenant}", "shares.get", tenants="all")
async def get(call: WebCall, tenant: str) -> TenantShares:
    """Return one tenant in the same way, with the queues in which it has unfinished jobs."""
    return shown_shares(await call.app.tenants.ashare(tenant))


def shown_shares(shares: TenantShares) -> TenantShares:
    """Return shares as they may be shown: people write secrets into reasons (S6)."""
    items = (
        replace(one, paused=hold_shown(one.paused), closed=hold_shown(one.closed)) for one in shares.items
    )
    queues = (replace(one, paused=hold_shown(one.paused)) for one in shares.queues)
    return replace(shares, items=tuple(items), queues=tuple(queues))
