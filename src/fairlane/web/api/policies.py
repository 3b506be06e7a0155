"""What requests and replies of policies share: holds, limits, rates, redaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fairlane.app.admin.budgets import BudgetView
from fairlane.app.admin.gates import GateView
from fairlane.app.admin.published_tasks import PublishedTask
from fairlane.app.admin.views import Held, Overridden, QueueView, Tenant
from fairlane.app.config.units import seconds_of
from fairlane.app.redaction import REDACTED
from fairlane.model.instants import LAST_INSTANT, to_datetime
from fairlane.model.policy.limits import Limits, OnFull, Rate
from fairlane.model.policy.rate_text import NONE, read_rate
from fairlane.model.scope import Scope
from fairlane.store.contract.request import Request
from fairlane.web.call import WebCall
from fairlane.web.declare import Change
from fairlane.web.reading import bad_field

Subject = TypeVar("Subject", QueueView, Tenant, PublishedTask, GateView, BudgetView)

Count: TypeAlias = Annotated[int, Meta(ge=0, le=LAST_INSTANT)] | Literal["none"] | UnsetType | None
"""A limit in jobs: None, or `none` where all is text, removes it; left out it stays as it is."""

RateValue: TypeAlias = Rate | str | UnsetType | None
"""A rate, also as in `50/minute` or `10/second+20`; None or `none` removes it; left out it stays."""


class EndingBody(Change, frozen=True, kw_only=True):
    """A change that may end by itself: at `until`, or after a while, as in `30m` or `2h`."""

    until: datetime | None = None
    lasts: str | None = msgspec.field(default=None, name="for")


class HoldBody(EndingBody, frozen=True, kw_only=True):
    """Pause or close: `note` says why and must not be empty."""


class OverrideBody(EndingBody, frozen=True, kw_only=True):
    """Override what is declared, until it ends or is reset."""


class TenantLimitsBody(OverrideBody, frozen=True, kw_only=True):
    """Limits of a tenant in a queue. Those that are left out stay as they are."""

    waiting: Count = UNSET
    on_full: OnFull | UnsetType = UNSET
    running: Count = UNSET


def reason_in(body: Change) -> str:
    """Return the note of a change that must say why."""
    if not body.note.strip():
        raise bad_field("note", "is empty", "say why: others will want to know", "required")
    return body.note


async def end_in(call: WebCall, body: EndingBody) -> datetime | None:
    """Return when a change ends by itself, by the store's clock; None if it does not."""
    if body.lasts is None:
        return body.until
    if body.until is not None:
        raise bad_field("for", "is given together with until", "give one of them")
    try:
        seconds = seconds_of(body.lasts)
    except ValueError:
        raise bad_field("for", f"is {body.lasts[:40]!r}", "write it as in 30m or 2h") from None
    status = await call.app.client.store.registry.status(Request(scope=Scope.all()))
    return to_datetime(status.now) + timedelta(seconds=seconds)


def count_in(count: Count) -> int | UnsetType | None:
    """Return a limit in jobs.

    >>> count_in(3), count_in("none"), count_in(None), count_in(UNSET)
    (3, None, None, UNSET)
    """
    return None if count == NONE else count


def rate_in(field: str, rate: RateValue) -> Rate | UnsetType | None:
    """Return a rate.

    >>> rate_in("rate", "50/minute"), rate_in("rate", None), rate_in("rate", UNSET)
    (Rate(limit=50, per='minute', burst=1), None, UNSET)
    """
    if not isinstance(rate, str):
        return rate
    try:
        return read_rate(rate)
    except ValueError as error:
        raise bad_field(field, str(error), "write it as in 50/minute") from None


def limits_in(body: TenantLimitsBody, rate: Rate | UnsetType | None, before: Limits) -> Limits | None:
    """Return the limits with what a request changes in them; None if it changes none.

    >>> limits_in(TenantLimitsBody(running=2), UNSET, Limits(waiting=9))
    Limits(waiting=9, on_full='warn', running=2, rate=None)
    >>> limits_in(TenantLimitsBody(), UNSET, Limits(waiting=9)) is None
    True
    """
    given: dict[str, Any] = {
        "waiting": count_in(body.waiting),
        "on_full": body.on_full,
        "running": count_in(body.running),
        "rate": rate,
    }
    changed = {name: value for name, value in given.items() if value is not UNSET}
    return replace(before, **changed) if changed else None


def shown(view: Subject) -> Subject:
    """Return a view as it may be shown: people write secrets into reasons (S6).

    >>> from fairlane.app.admin.gates import GateView
    >>> from datetime import datetime, timedelta
    >>> override = Overridden({}, "ann", "password=hunter2", datetime(2026, 1, 1), None)
    >>> gate = GateView(name="door", limit=1, rate=None, used=0, declared=None, override=override)
    >>> shown(gate).override.note
    'password=[redacted]'
    """
    changes: dict[str, Any] = {"override": _override(view.override)}
    if not isinstance(view, GateView | BudgetView):
        changes |= {"paused": hold_shown(view.paused), "closed": hold_shown(view.closed)}
    return replace(view, **changes)


def hold_shown(hold: Held | None) -> Held | None:
    """Return a pause or close as it may be shown."""
    return None if hold is None else replace(hold, reason=_text(hold.reason))


def _override(override: Overridden | None) -> Overridden | None:
    return None if override is None else replace(override, note=_text(override.note))


def _text(text: str) -> str:
    return REDACTED.text(text) or ""


def every_queue(tenant: Tenant) -> Limits:
    """Return the limits that a tenant has in every queue."""
    for values in (None if tenant.override is None else tenant.override.values, tenant.declared):
        limits: Mapping[str, Limits] = {} if values is None else values.get("limits", {})
        if "*" in limits:
            return limits["*"]
    return Limits()
