"""Check the filters of dead letters, and make fields of a store's request from them (S75)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypedDict, get_args

from fairlane.app.admin.validation import flag_of, instant_or_none, name_of, scope_of
from fairlane.app.enqueue.checks import kind_of
from fairlane.model.failure import ErrorClass
from fairlane.model.names import label_hint
from fairlane.model.review import Review

REVIEWS: Final[tuple[Review, ...]] = get_args(Review)

_SHOWN: Final = 60


class DeadFilters(TypedDict, total=False):
    """The filters of dead letters. One that is missing or None matches every letter.

    `since` (inclusive) and `until` (exclusive) are about the time of death.
    """

    tenant: str | None
    queue: str | None
    task: str | None
    error_class: ErrorClass | str | None
    fingerprint: str | None
    review: Review | None
    acknowledged: bool | None
    since: datetime | None
    until: datetime | None


def dead_filters_of(filters: DeadFilters) -> dict[str, Any]:
    """Return the filters as fields of a request, with the scope; TypeError for an unknown filter.

    >>> dead_filters_of({"review": "lost"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: review: 'lost' is not one; use pending, reprocessed, resolved, ignored, discarded
    """
    unknown = sorted(set(filters) - set(DeadFilters.__annotations__))
    if unknown:
        message = f"{unknown[0]!r} is not a filter; there are {', '.join(DeadFilters.__annotations__)}"
        raise TypeError(message)
    given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    fields: dict[str, Any] = {name: name_of(name, given[name]) for name in ("queue", "task") if name in given}
    if "error_class" in given:
        fields["error_class"] = ErrorClass(_one_of("error_class", given["error_class"], tuple(ErrorClass)))
    if "review" in given:
        fields["review"] = _one_of("review", given["review"], REVIEWS)
    if "fingerprint" in given:
        fields["fingerprint"] = _fingerprint(given["fingerprint"])
    if "acknowledged" in given:
        fields["is_acknowledged"] = flag_of("acknowledged", given["acknowledged"])
    for name in ("since", "until"):
        fields[name] = instant_or_none(name, given.get(name))
    return {**fields, "scope": scope_of(given.get("tenant"))}


def filters_shown(filters: DeadFilters) -> dict[str, Any]:
    """Return the filters that were given as JSON values, for the audit."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in filters.items()
        if value is not None
    }


def _one_of(field: str, value: object, allowed: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in allowed:
        return value
    shown = repr(value[:_SHOWN]) if isinstance(value, str) else f"a value of type {kind_of(value)}"
    message = f"{field}: {shown} is not one; use {', '.join(allowed)}"
    raise ValueError(message)


def _fingerprint(value: object) -> str:
    hint = label_hint(value)
    if hint is None:
        return str(value)
    message = f"fingerprint: {hint}, as `groups` shows them"
    raise ValueError(message)
