"""Order and filter tenants, and show a page of them with the queues that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from fairlane.app.admin.paging import count_by_queue
from fairlane.app.admin.shares.reading import Place, Row, Standings, read_first, read_standings
from fairlane.app.admin.shares.views import (
    FILTERS,
    QueueShare,
    SharedQueue,
    ShareFilter,
    ShareOrder,
    SlotHolder,
    TenantShare,
    TenantShares,
)
from fairlane.app.admin.views import held_view, to_optional_datetime
from fairlane.model.instants import LAST_INSTANT
from fairlane.model.lifecycle.states import HOT, State
from fairlane.model.scope import Scope
from fairlane.store.contract import Store
from fairlane.store.contract.request import from_cursor, to_cursor

_HOLDERS: Final = 12

Key = tuple[int, ...]


class _SharesPosition(msgspec.Struct, frozen=True, array_like=True):
    """Behind which tenant a page begins, in an order."""

    order: str
    key: tuple[int, ...]
    name: str


class ShareQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tenants, in which order, and which page of them."""

    order: ShareOrder = "impact"
    only: ShareFilter = "all"
    name: str = ""
    labels: Mapping[str, str] = {}
    limit: int = 50
    cursor: str | None = None


async def shares_page(store: Store, query: ShareQuery) -> TenantShares:
    """Return one page of all tenants; ValueError for a cursor of another order."""
    after = None if query.cursor is None else from_cursor(query.cursor, _SharesPosition)
    if after is not None and after.order != query.order:
        message = f"this cursor is of the order {after.order[:20]!r}; take the one of the page before"
        raise ValueError(message)
    standings = await read_standings(store)
    rows = standings.rows.values()
    places = ((row, queue, place) for row in rows for queue, place in row.places.items())
    # By impact those come first that have been slowed for longest; what the page shows is read below.
    is_wide = query.order == "waits"
    await read_first(store, ((row, queue) for row, queue, one in places if is_wide or one.is_slowed))
    named = [row for row in rows if _is_named(row, query)]
    counts: dict[ShareFilter, int] = {one: sum(map(_FILTERS[one], named)) for one in FILTERS}
    chosen = sorted((_KEYS[query.order](row), row.name) for row in named if _FILTERS[query.only](row))
    if after is not None:
        chosen = [one for one in chosen if one > (after.key, after.name)]
    shown = [standings.rows[name] for _, name in chosen[: query.limit]]
    await read_first(store, ((row, queue) for row in shown for queue in row.places))
    is_more = len(chosen) > query.limit
    return TenantShares(
        items=tuple(map(tenant_share, shown)),
        queues=shared_queues(standings),
        counts=counts,
        cursor=to_cursor(_SharesPosition(query.order, *chosen[query.limit - 1])) if is_more else None,
        is_complete=standings.is_complete,
    )


async def share_of(store: Store, name: str) -> TenantShares:
    """Return one tenant, and the queues in which it has unfinished jobs."""
    counts = await count_by_queue(store, Scope(name))
    queues = sorted(queue for queue, states in counts.items() if any(states[one] for one in HOT))
    standings = await read_standings(store, queues, (name,))
    row = standings.rows[name]
    row.dead = sum(states[State.DEAD] for states in counts.values())
    others = ((one, queue) for one in standings.rows.values() for queue in queues if one.places.get(queue))
    slowed = [(one, queue) for one, queue in others if one is row or one.places[queue].is_slowed]
    await read_first(store, slowed)
    return TenantShares(
        items=(tenant_share(row),),
        queues=tuple(one for one in shared_queues(standings) if one.queue in row.places),
        counts={},
        cursor=None,
        is_complete=standings.is_complete,
    )


async def shares_in(store: Store, queue: str, limit: int) -> TenantShares:
    """Return the first tenants of one queue by impact, as far as that queue goes."""
    standings = await read_standings(store, [queue])
    rows = [row for row in standings.rows.values() if queue in row.places]
    await read_first(store, ((row, queue) for row in rows if row.is_slowed))
    shown = sorted(rows, key=lambda row: (_impact(row), row.name))[:limit]
    await read_first(store, ((row, queue) for row in shown))
    return TenantShares(
        items=tuple(map(tenant_share, shown)),
        queues=shared_queues(standings),
        counts={"all": len(rows)},
        cursor=None,
        is_complete=standings.is_complete,
    )


def tenant_share(row: Row) -> TenantShare:
    """Return the view of a tenant."""
    first = _first_since(row)
    return TenantShare(
        tenant=row.name,
        weight=row.rules.weight,
        labels=row.rules.labels,
        paused=held_view(row.policy.paused),
        closed=held_view(row.policy.closed),
        ready=row.total("ready"),
        delayed=row.total("delayed"),
        running=row.total("running"),
        fair=round(sum(place.fair for place in row.places.values()), 2),
        dead=row.dead,
        is_over=row.is_over,
        is_slowed=row.is_slowed,
        waits_since=to_optional_datetime(None if first == LAST_INSTANT else first),
        queues=tuple(_queue_share(queue, place) for queue, place in sorted(row.places.items())),
    )


def shared_queues(standings: Standings) -> Sequence[SharedQueue]:
    """Return the queues with ready or running jobs: those first where somebody is slowed, then by slots."""
    views = [_shared_queue(standings, name) for name in standings.queues]
    busy = [one for one in views if one.running or one.ready]
    return tuple(sorted(busy, key=lambda one: (-one.sloweds, -one.running, -one.ready, one.queue)))


def _shared_queue(standings: Standings, queue: str) -> SharedQueue:
    found = standings.of_queue(queue)
    held = sorted((one for one in found if one[1].running), key=lambda one: (-one[1].running, one[0].name))
    over = sorted((one for one in found if one[1].is_over), key=lambda one: one[1].fair - one[1].running)
    slowed = sorted(
        (one for one in found if one[1].is_slowed), key=lambda one: (_since(one[1].since), one[0].name)
    )
    return SharedQueue(
        queue=queue,
        running=sum(place.running for _, place in found),
        ready=sum(place.ready for _, place in found),
        tenants=len(found),
        holders=_holders(held),
        over=_holders(over),
        overs=len(over),
        slowed=_holders(slowed),
        sloweds=len(slowed),
        paused=held_view(standings.queues[queue].paused),
    )


def _holders(found: Sequence[tuple[Row, Place]]) -> Sequence[SlotHolder]:
    return tuple(
        SlotHolder(
            tenant=row.name,
            running=place.running,
            fair=round(place.fair, 2),
            waits_since=to_optional_datetime(place.since),
            first_id=place.first_id,
        )
        for row, place in found[:_HOLDERS]
    )


def _queue_share(queue: str, place: Place) -> QueueShare:
    return QueueShare(
        queue=queue,
        ready=place.ready,
        delayed=place.delayed,
        running=place.running,
        fair=round(place.fair, 2),
        guaranteed=round(place.guaranteed, 2),
        is_over=place.is_over,
        is_slowed=place.is_slowed,
        first_id=place.first_id,
        waits_since=to_optional_datetime(place.since),
    )


def _is_named(row: Row, query: ShareQuery) -> bool:
    labels = row.rules.labels
    return query.name.casefold() in row.name.casefold() and all(
        labels.get(key) == value for key, value in query.labels.items()
    )


_FILTERS: Final[Mapping[ShareFilter, Callable[[Row], bool]]] = {
    "all": lambda _: True,
    "over": lambda row: row.is_over,
    "slowed": lambda row: row.is_slowed,
    "waiting": lambda row: row.total("delayed", "ready") > 0,
    "running": lambda row: row.total("running") > 0,
    "held": lambda row: row.policy.paused is not None or row.policy.closed is not None,
    "dead": lambda row: row.dead > 0,
    "idle": lambda row: not row.places,
}


def _since(since: int | None) -> int:
    return LAST_INSTANT if since is None else since


def _first_since(row: Row) -> int:
    return min((_since(place.since) for place in row.places.values()), default=LAST_INSTANT)


def _slowed_since(row: Row) -> int:
    return min((_since(one.since) for one in row.places.values() if one.is_slowed), default=LAST_INSTANT)


def _impact(row: Row) -> Key:
    """Return those first who slow others, then those who are slowed, longest first, then the largest."""
    return (int(not row.is_over), _slowed_since(row), -row.total("delayed", "ready"), -row.total("running"))


_KEYS: Final[Mapping[ShareOrder, Callable[[Row], Key]]] = {
    "impact": _impact,
    "waits": lambda row: (_first_since(row),),
    "waiting": lambda row: (-row.total("delayed", "ready"),),
    "running": lambda row: (-row.total("running"),),
    "dead": lambda row: (-row.dead,),
    "name": lambda _: (),
}
